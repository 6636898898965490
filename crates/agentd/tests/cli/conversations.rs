//! `agentd conversations`.

use super::test_cli::TestCli;

#[test]
fn branches_are_drawn() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `true`"]);
    cli.ok(&["reset", "coder"]);
    cli.ok(&["reset", "coder", "--undo"]);
    cli.ok(&["reset", "coder"]);
    let all = cli.json(&["conversations", "coder"]);
    assert_eq!(all["conversations"].as_array().unwrap().len(), 3);
    let out = cli.ok(&["conversations", "coder"]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("● 1  "), "{out}");
    assert!(lines[1].starts_with("├─● 2  "), "{out}");
    assert!(lines[2].starts_with("● 3  "), "{out}");
    assert!(lines[2].ends_with("← current"), "{out}");
}

/// Texts for people contained the ids of conversations, which are hard to read and to type.
#[test]
fn people_see_numbers_and_programs_see_ids() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `true`"]);
    let mut texts = vec![cli.ok(&["reset", "coder"])];
    texts.push(cli.ok(&["rewind", "coder", "--to", "1", "--conversation", "1"]));
    texts.push(cli.ok(&["reset", "coder", "--undo"]));
    let shown: [&[&str]; 4] = [
        &["conversations", "coder"],
        &["show", "coder"],
        &["show", "coder", "--conversation", "3"],
        &["logs", "coder", "--all"],
    ];
    texts.extend(shown.map(|args| cli.ok(args)));
    let all = cli.json(&["conversations", "coder"]);
    let conversations = all["conversations"].as_array().unwrap();
    assert_eq!(conversations.len(), 3);
    for conversation in conversations {
        let id = conversation["id"].as_str().unwrap();
        assert!(texts.iter().all(|text| !text.contains(id)), "{texts:#?}");
    }
    assert!(texts[0].contains("a new conversation, 2"), "{}", texts[0]);
}

#[test]
fn turns_are_listed_with_the_first_words_of_their_prompts() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo one`\nand more"]);
    // A prompt that was sent while another turn was running is before that turn's end in the journal.
    let first = cli.start(&["send", "coder", "run `sleep 1`"]);
    cli.until_tool("coder");
    cli.ok(&["send", "coder", "run `echo three`"]);
    super::test_cli::ended(first);
    let one = cli.json(&["show", "coder", "--conversation", "1"]);
    let prompts: Vec<_> = one["ended"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| &turn["prompt"])
        .collect();
    assert_eq!(
        prompts,
        ["run `echo one`", "run `sleep 1`", "run `echo three`"]
    );
    let out = cli.ok(&["show", "coder", "--conversation", "1"]);
    assert!(out.contains("“run `echo three`”"), "{out}");
}

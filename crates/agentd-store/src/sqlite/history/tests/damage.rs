//! Databases with a page that was overwritten: what the other pages have is read.

use super::*;

const PAGE: usize = 4096;
/// How many rows the damaged table has.
const ROWS: usize = 50;

/// A text of which a page has a few.
fn text(n: usize) -> String {
    format!("<{n}> {}", "x".repeat(900))
}

/// The number of the row whose text this begins with.
fn number(text: &str) -> usize {
    let end = text.find('>').unwrap();
    text[1..end].parse().unwrap()
}

/// Overwrites the page that has this text. Returns the rows that were in it.
fn damage(path: &Path, row: usize) -> Vec<usize> {
    let mut bytes = fs::read(path).unwrap();
    let has = |page: &[u8], n: usize| {
        let marker = format!("<{n}>");
        page.windows(marker.len())
            .any(|found| found == marker.as_bytes())
    };
    // The last one: a root keeps the bytes of cells that it had as a leaf.
    let page = bytes.chunks_mut(PAGE).rfind(|page| has(page, row)).unwrap();
    let lost = (1..=ROWS).filter(|n| has(page, *n)).collect();
    page.fill(0);
    fs::write(path, bytes).unwrap();
    lost
}

/// A directory with a database of this schema, and the connection that fills it.
fn filled(schema: &str, fill: impl FnOnce(&Connection)) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    let writer = Connection::open(&path).unwrap();
    let size = i64::try_from(PAGE).unwrap();
    writer.pragma_update(None, "page_size", size).unwrap();
    writer.execute_batch(schema).unwrap();
    fill(&writer);
    drop(writer);
    (dir, path)
}

fn open(program: Program, path: &Path) -> (HistoryDatabase, tempfile::TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    let database = HistoryDatabase::open(program, path, scratch.path()).unwrap();
    (database, scratch)
}

/// The numbers of the rows that are not in the list.
fn without(lost: &[usize]) -> Vec<usize> {
    (1..=ROWS).filter(|n| !lost.contains(n)).collect()
}

/// How many records for rows that cannot be read are expected.
fn reported(row: usize, lost: &[usize]) -> usize {
    match row {
        // How many rows were at the damaged end is not known.
        ROWS => 1,
        _ => lost.len(),
    }
}

#[test]
fn a_damaged_page_of_goose_costs_only_its_own_messages() {
    for row in [1, 25, ROWS] {
        let (_dir, path) = filled(GOOSE, |writer| {
            let sql = "INSERT INTO sessions (id, name, created_at) VALUES ('s', 'n', '2026-11-17 12:00:00')";
            writer.execute(sql, []).unwrap();
            let sql = "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('s', 'user', ?1, 1)";
            for n in 1..=ROWS {
                let content = json!([{"type": "text", "text": text(n)}]).to_string();
                writer.execute(sql, [content]).unwrap();
            }
        });
        let lost = damage(&path, row);
        let (database, _scratch) = open(Program::Goose, &path);
        assert_eq!(database.sessions().unwrap(), ["s"]);
        let found = records(&database, "s");
        // The session itself, and the messages of the other pages.
        let read: Vec<&Value> = found.iter().flatten().skip(1).collect();
        let numbers = read.iter().map(|it| &it["content"][0]["text"]);
        let numbers: Vec<usize> = numbers.map(|it| number(it.as_str().unwrap())).collect();
        assert_eq!(numbers, without(&lost), "{row}");
        assert_eq!(found.len() - 1 - read.len(), reported(row, &lost), "{row}");
    }
}

/// The messages of an opencode session, the newest first in the table, and a part of each.
fn opencode(
    indexes: &str,
    in_message: fn(usize) -> String,
    in_part: fn(usize) -> String,
) -> Filled {
    let schema = format!("{OPENCODE}{indexes}");
    filled(&schema, |writer| {
        let sql =
            "INSERT INTO session VALUES ('s', NULL, '/home/user/project', 'A title', NULL, 1)";
        writer.execute(sql, []).unwrap();
        for n in 1..=ROWS {
            let message = json!({"role": "user", "text": in_message(n)}).to_string();
            let part = json!({"type": "text", "text": in_part(n)}).to_string();
            let (id, time) = (format!("msg_{n:02}"), i64::try_from(ROWS - n).unwrap());
            let sql = "INSERT INTO message VALUES (?1, 's', ?2, ?3)";
            writer.execute(sql, params![id, time, message]).unwrap();
            let sql = "INSERT INTO part VALUES (?1, ?1, ?2)";
            writer.execute(sql, params![id, part]).unwrap();
        }
    })
}

type Filled = (tempfile::TempDir, PathBuf);

/// As the program has them.
const INDEXES: &str = "
    CREATE INDEX message_of_session ON message (session_id, time_created, id);
    CREATE INDEX part_of_message ON part (message_id);";

/// With the index, messages are read in their order until one cannot be read, and the rest by their rows.
#[test]
fn a_damaged_page_of_opencode_costs_only_its_own_messages() {
    for (row, indexes) in [(1, ""), (25, ""), (ROWS, ""), (1, INDEXES), (25, INDEXES)] {
        let (_dir, path) = opencode(indexes, text, |_| String::new());
        let lost = damage(&path, row);
        let (database, _scratch) = open(Program::Opencode, &path);
        assert_eq!(database.sessions().unwrap(), ["s"]);
        let found = records(&database, "s");
        assert_eq!(found[0].as_ref().unwrap()["title"], "A title");
        let read: Vec<&Value> = found.iter().flatten().skip(1).collect();
        let numbers = read.iter().map(|it| number(it["text"].as_str().unwrap()));
        let mut numbers: Vec<usize> = numbers.collect();
        numbers.sort_unstable();
        assert_eq!(numbers, without(&lost), "{row} {indexes}");
        assert!(read.iter().all(|it| it["parts"][0]["type"] == "text"));
        let unread = found.len() - 1 - read.len();
        assert_eq!(unread, reported(row, &lost), "{row} {indexes}");
    }
}

#[test]
fn a_message_whose_parts_are_damaged_is_passed_on_without_them() {
    let (_dir, path) = opencode(INDEXES, |n| n.to_string(), text);
    let lost = damage(&path, 25);
    let (database, _scratch) = open(Program::Opencode, &path);
    let found = records(&database, "s");
    let messages: Vec<&Value> = found.iter().flatten().skip(1).collect();
    assert_eq!(messages.len(), ROWS);
    for message in messages {
        let n: usize = message["text"].as_str().unwrap().parse().unwrap();
        let parts = message["parts"].as_array().unwrap().len();
        assert_eq!(parts, usize::from(!lost.contains(&n)), "{n}");
    }
    // Each of them is followed by a damaged record.
    assert_eq!(found.len() - 1 - ROWS, lost.len());
}

#[test]
fn a_damaged_page_of_sessions_costs_only_its_own_sessions() {
    let of_goose = "INSERT INTO sessions (id, name, created_at) VALUES (?1, ?2, '2026-11-17')";
    let of_opencode = "INSERT INTO session (id, title, time_created) VALUES (?1, ?2, 1)";
    let message_of_goose = "INSERT INTO messages (session_id, role) VALUES ('ses_25', 'user')";
    let message_of_opencode = "INSERT INTO message VALUES ('m', 'ses_25', 1, '{}')";
    for (program, schema, session, message) in [
        (Program::Goose, GOOSE, of_goose, message_of_goose),
        (
            Program::Opencode,
            OPENCODE,
            of_opencode,
            message_of_opencode,
        ),
    ] {
        let (_dir, path) = filled(schema, |writer| {
            for n in 1..=ROWS {
                let id = format!("ses_{n:02}");
                writer.execute(session, params![id, text(n)]).unwrap();
            }
            writer.execute(message, []).unwrap();
        });
        let lost = damage(&path, 25);
        let (database, _scratch) = open(program, &path);
        // Its message tells that there was a session 25.
        let expected = without(&lost).into_iter().chain([25]);
        let expected: Vec<String> = expected.map(|n| format!("ses_{n:02}")).collect();
        assert_eq!(database.sessions().unwrap(), expected, "{program}");
    }
}

//! Which lines deny and ask rules match, and which lines need approval because it is uncertain.

use super::{Allow, Ask, Decision, Deny, rule};
use crate::permission::{Subject, decide};

fn decision(line: &str) -> Decision {
    let rules = [
        rule("shell", Some("rm *"), Deny),
        rule("shell", Some("git push*"), Deny),
        rule("shell", Some("curl *"), Ask),
        rule("*", None, Allow),
    ];
    decide(&rules, "shell", &Subject::Command(line.into()), Deny)
}

#[test]
fn a_command_is_denied_however_it_is_written() {
    for line in [
        "rm x",
        "  rm x",
        "r''m x",
        "'rm' x",
        "\"rm\" x",
        "r\"m\" x",
        "\\rm x",
        "r\\m x",
        "r\\\nm x",
        "$'rm' x",
        "rm\tx",
        "/bin/rm x",
        "../../bin/rm x",
        "~/rm x",
        "A=1 rm x",
        "> y rm x",
        "2>&1 rm x",
        "rm $x",
        "rm -rf ${x:-/}",
        "true; rm x",
        "true\nrm x",
        "true & rm x",
        "true |& rm x",
        "true || rm x",
        "! rm x",
        "time rm x",
        "time -p -- rm x",
        "\\time -p rm x",
        "(rm x)",
        "((rm x))",
        "{ rm x; }",
        "f() { rm x; }; f",
        "function f { rm x; }",
        "if true; then rm x; fi",
        "while rm x; do true; done",
        "for i in 1; do rm x; done",
        "select i in 1; do rm x; done",
        "case x in x) rm x ;; esac",
        "case x in x|y) true ;& *) rm x ;; esac",
        "echo $(rm x)",
        "echo \"a $(rm x) b\"",
        "echo `rm x`",
        "echo ${y:-$(rm x)}",
        "a=$(rm x)",
        "cat <(rm x)",
        "cat > $(rm x)",
        "cat <<E\n$(rm x)\nE",
        "cat <<< $(rm x)",
        "command rm x",
        "command -p rm x",
        "builtin exec rm x",
        "exec rm x",
        "exec -a y rm x",
        "env rm x",
        "env -i rm x",
        "env -u A B=1 rm x",
        "env -- rm x",
        "nohup rm x &",
        "nice rm x",
        "nice -n 5 rm x",
        "nice -5 rm x",
        "timeout 5 rm x",
        "timeout --signal=KILL 5 rm x",
        "stdbuf -oL rm x",
        "setsid -w rm x",
        "ionice -c 3 rm x",
        "sudo rm x",
        "sudo -u root -E rm x",
        "sudo A=1 rm x",
        "doas -u root rm x",
        "chroot / rm x",
        "coproc rm x",
        "xargs rm",
        "ls | xargs -n 1 rm -f",
        "ls | xargs -I% rm %",
        "sh -c 'rm x'",
        "bash -c \"rm x\"",
        "bash -euo pipefail -c 'rm x'",
        "bash +x -c 'rm x'",
        "bash -e +o pipefail -c 'rm x'",
        "sh +c 'rm x'",
        "sudo bash -c 'true && rm x'",
        "sh -c \"sh -c 'rm x'\"",
        "eval rm x",
        "eval 'r'm x",
        "eval 'true; rm x'",
        "trap 'rm x' EXIT",
        "find . -exec rm {} \\;",
        "find . -type f -ok rm {} ';'",
        "find . -exec true {} + -execdir rm {} +",
        "git push",
        "git push origin main",
        "git -C . push",
        "git --no-pager -c color.ui=never push",
        "/usr/bin/git push",
        // A line that cannot be parsed is checked piece by piece.
        "((i++)); rm x",
        "echo 'a; rm x",
    ] {
        assert_eq!(decision(line), Deny, "{line}");
    }
}

#[test]
fn a_line_that_may_hide_a_command_is_asked_about() {
    for line in [
        "curl x",
        "true; curl x",
        "$x y",
        "r${x}m y",
        "r$x y",
        "r$IFS y",
        "${x:-rm} y",
        "a=rm; $a y",
        "$(echo rm) y",
        "`echo rm` y",
        "/bin/r? y",
        "{rm,-rf,y}",
        "$'r\\x6d' y",
        "eval \"$x\"",
        "PS4='$(rm x)'; set -x; true",
        "PS4='$(rm x)' bash -x -c true",
        "export PS4='$(rm x)'",
        "env BASH_ENV=evil bash -c true",
        "ENV=evil sh -c true",
        "IFS=x; ls",
        "read PROMPT_COMMAND",
        "for PS4 in a; do true; done",
        "source x",
        ". ./x",
        "printf 'r%s y' m | sh",
        "echo cm0geA== | base64 -d | bash",
        "bash < x",
        "bash -s",
        "sh -c \"$x\"",
        "sh -c \"$(cat x)\"",
        "python3 - < x",
        "cat x | python3",
        "xargs sh",
        "xargs -a x env",
        "alias r=rm",
        "hash -p /bin/rm x; x y",
        "shopt -s expand_aliases",
        "enable -f x rm",
        "busybox rm y",
        "su -c 'rm y'",
        "env -S 'rm y'",
        "timeout $x rm y",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm y",
        "echo $((x))",
        "echo 'unfinished",
        "a=(1 2)",
        "git $x",
        "/usr/bin/git $x",
        "git -C . $x",
        "git pus*",
        "git -c alias.x=push x",
    ] {
        assert_eq!(decision(line), Ask, "{line}");
    }
}

#[test]
fn other_lines_are_as_they_would_be() {
    for line in [
        "rmdir x",
        "git rm x",
        "echo rm x",
        "echo 'rm x; rm y'",
        "git status # rm x",
        "git log $x",
        "git commit -m 'push'",
        "git pull",
        "ls *.rs",
        "for f in *; do echo \"$f\"; done",
        "cat <<'E'\nrm x\n$(rm x)\nE",
        "make > log",
        "bash x.sh",
        "f() { true; }",
        "A=1 make",
    ] {
        assert_eq!(decision(line), Allow, "{line}");
    }
}

#[test]
fn without_patterns_the_default_holds_for_any_line() {
    let hidden = ["eval $x", "echo 'unfinished", "$x"];
    for line in hidden.map(|line| Subject::Command(line.into())) {
        let allow = [rule("shell", Some("git *"), Allow)];
        let other_tool = [rule("read_file", Some("*.key"), Deny)];
        for default in [Allow, Ask, Deny] {
            assert_eq!(decide(&[], "shell", &line, default), default);
            assert_eq!(decide(&allow, "shell", &line, default), default);
            assert_eq!(decide(&other_tool, "shell", &line, default), default);
        }
    }
}

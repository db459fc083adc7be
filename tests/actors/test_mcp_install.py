"""`mcp install` and `uninstall`: our entry comes and goes, every other byte of a host's file stays."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.actors.hosts.mcp.install.config_file import read_config, write_config
from session_query.actors.hosts.mcp.install.edits import EditRefused
from session_query.actors.hosts.mcp.install.jsonc_edit import remove_entry, set_entry
from session_query.actors.hosts.mcp.install.jsonc_scan import plain_value
from session_query.actors.hosts.mcp.install.targets import TARGETS, Command
from session_query.actors.hosts.mcp.install.toml_edit import remove_table, set_table
from support.command_line import CommandLine

CONFIGS = Path(__file__).parent / "mcp_configs"
SAMPLES = {
    "claude-code.json": "claude-code",
    "claude-code-minified.json": "claude-code",
    "codex.toml": "codex",
    "codex-no-newline.toml": "codex",
    "gemini.json": "gemini",
    "opencode.jsonc": "opencode",
    "zed.jsonc": "zed",
    "vscode.json": "vscode",
}
EDITS: dict[str, tuple[bytes, bytes]] = {
    "claude-code.json": (b'"numStartups": 12', b'"numStartups": 13, "tip": "\xc3\xa9"'),
    "claude-code-minified.json": (b'"numStartups":1', b'"numStartups":2'),
    "codex.toml": (b"[profiles.fast]\r\n", b'[profiles.fast]\r\nmodel = "o1" # faster\r\n'),
    "codex-no-newline.toml": (b'"o9"', b'"o10"'),
    "gemini.json": (b'"Default"', b'"Dark"'),
    "opencode.jsonc": (b"// slow\n", b"// slow\n    // very slow\n"),
    "zed.jsonc": (b'"tab_size": 4', b'"tab_size": 8'),
    "vscode.json": (b'"inputs": [\r\n', b'"inputs": [\r\n\t\t{ "id": "other" },\r\n'),
}
"""What a person or the host changes elsewhere in the file after the installation."""
COMMAND = Command("/opt/session-query", ("mcp",))
ENTRIES: dict[str, Any] = {
    "claude-code": {"type": "stdio", "command": "/opt/session-query", "args": ["mcp"], "env": {}},
    "codex": {"command": "/opt/session-query", "args": ["mcp"]},
    "gemini": {"command": "/opt/session-query", "args": ["mcp"]},
    "opencode": {"type": "local", "command": ["/opt/session-query", "mcp"], "enabled": True},
    "zed": {"command": "/opt/session-query", "args": ["mcp"]},
    "vscode": {"type": "stdio", "command": "/opt/session-query", "args": ["mcp"]},
}


def parsed(host: str, text: str) -> Any:
    return tomllib.loads(text) if TARGETS[host].toml else plain_value(text)


def sample(name: str) -> str:
    return (CONFIGS / name).read_bytes().decode()


@pytest.mark.parametrize("name", SAMPLES)
def test_an_entry_is_what_its_host_documents_and_nothing_else_changes(name: str) -> None:
    target, text = TARGETS[SAMPLES[name]], sample(name)
    installed = target.with_entry(text, "session-query", COMMAND)
    expected = parsed(target.name, text)
    expected.setdefault(target.container, {})["session-query"] = ENTRIES[target.name]
    assert parsed(target.name, installed) == expected
    remaining = iter(installed)
    assert all(character in remaining for character in text), "the old text stands in the new one, in order"


@pytest.mark.parametrize("name", SAMPLES)
def test_installing_twice_changes_nothing_more(name: str) -> None:
    target = TARGETS[SAMPLES[name]]
    once = target.with_entry(sample(name), "session-query", COMMAND)
    assert target.with_entry(once, "session-query", COMMAND) == once


@pytest.mark.parametrize("name", SAMPLES)
def test_uninstalling_gives_the_file_back_to_the_byte(name: str) -> None:
    target, text = TARGETS[SAMPLES[name]], sample(name)
    installed = target.with_entry(text, "session-query", COMMAND)
    assert target.without_entry(installed, "session-query") == text


@pytest.mark.parametrize("name", SAMPLES)
def test_uninstalling_after_edits_elsewhere_removes_our_entry_alone(name: str) -> None:
    target, text, (old, new) = TARGETS[SAMPLES[name]], sample(name), EDITS[name]
    assert text.encode().count(old) == 1
    installed = target.with_entry(text, "session-query", COMMAND)
    edited = installed.encode().replace(old, new).decode()
    assert target.without_entry(edited, "session-query").encode() == text.encode().replace(old, new)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_neighbour_added_behind_ours_stays(name: str) -> None:
    target, text = TARGETS[SAMPLES[name]], sample(name)
    other = Command("later", ())
    both = target.with_entry(target.with_entry(text, "session-query", COMMAND), "later", other)
    alone = target.without_entry(both, "session-query")
    assert parsed(target.name, alone) == parsed(target.name, target.with_entry(text, "later", other))
    assert target.without_entry(alone, "later").strip() == text.strip()


@pytest.mark.parametrize("name", SAMPLES)
def test_what_a_person_added_to_our_entry_survives_a_new_command(name: str) -> None:
    target = TARGETS[SAMPLES[name]]
    installed = target.with_entry(sample(name), "session-query", Command("/old/place", ("mcp",)))
    if target.toml:
        edited = installed.replace("args = ", "startup_timeout_sec = 20\nargs = ")
    else:
        edited = re.sub(r'("session-query": \{)', r'\1 "timeout": 20, ', installed)
    updated = target.with_entry(edited, "session-query", COMMAND)
    assert updated == edited.replace("/old/place", "/opt/session-query")


def test_installing_into_nothing_makes_a_whole_file() -> None:
    made = TARGETS["vscode"].with_entry("", "session-query", COMMAND)
    assert json.loads(made) == {"servers": {"session-query": ENTRIES["vscode"]}}
    assert made.endswith("}\n")
    assert TARGETS["codex"].with_entry("", "session-query", COMMAND) == (
        '[mcp_servers.session-query]\ncommand = "/opt/session-query"\nargs = ["mcp"]\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '{"mcpServers": []}',
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        '{"a": }',
        '{"a": 1',
        '{"a": "unfinished}',
        '{"a": [1, 2}',
        "{a: 1}",
        "null",
    ],
)
def test_a_file_that_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(EditRefused):
        set_entry(text, "mcpServers", "x", {})


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { session-query = { command = "x" } }',
        'mcp_servers.session-query.command = "x"',
        "mcp_servers = 3",
        "a = ",
        "mcp_servers = { other = {} }",
    ],
)
def test_toml_written_another_way_is_refused_rather_than_guessed(text: str) -> None:
    with pytest.raises(EditRefused):
        set_table(text, "mcp_servers", "session-query", {"command": "y"})


def test_a_quoted_header_and_sub_tables_are_ours_too() -> None:
    text = (
        'a = 1\n\n[mcp_servers."session-query"] # ours\ncommand = "x"\n\n'
        "[mcp_servers.session-query.env]\nKEY = 'v'\n\n[mcp_servers.session-query-2]\ncommand = 'z'\n"
    )
    left = "a = 1\n\n[mcp_servers.session-query-2]\ncommand = 'z'\n"
    assert remove_table(text, "mcp_servers", "session-query") == left


def test_paths_are_quoted_for_both_formats() -> None:
    windows = Command('C:\\Program Files\\"sq"\\é\x7f.exe', ("mcp", "--data-dir", "D:\\x"))
    for host, target in TARGETS.items():
        entry = parsed(host, target.with_entry("", "s q", windows))[target.container]["s q"]
        assert windows.program in (entry["command"], entry["command"][0])


def test_a_name_that_stands_twice_goes_twice() -> None:
    text = '{"mcp": {"us": 1, "b": 2, "us": {"c": 3}}}'
    assert remove_entry(text, "mcp", "us") == '{"mcp": {"b": 2}}'


def test_deep_and_long_files_are_no_trouble() -> None:
    deep = "[" * 5_000 + "]" * 5_000
    long = "x\\\\" * 200_000
    text = f'{{"deep": {deep}, "long": "{long}"}}'
    installed = set_entry(text, "mcp", "us", {"command": "y"})
    assert remove_entry(installed, "mcp", "us") == text


_blank = st.sampled_from(["", " ", "\n", "\n  ", "\t", " // c\n", "/* } */", "\r\n    "])
_keys: st.SearchStrategy[list[str]] = st.lists(
    st.sampled_from(["a", "b", "mcp", "é", "x/*y", "//"]), max_size=3, unique=True
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Objects of a few members with whitespace, comments and trailing commas anywhere."""

    def value(depth: int) -> str:
        kind = draw(st.integers(0, 5 if depth < 3 else 2))
        if kind > 3:
            return an_object(depth + 1)
        return ["1.5", '"t \\" } , //"', "null", "[1, /* ] */ {}]"][kind]

    def an_object(depth: int) -> str:
        keys = draw(_keys)
        members = [f'{draw(_blank)}"{key}"{draw(_blank)}:{draw(_blank)}{value(depth)}' for key in keys]
        trailing = "," if draw(st.booleans()) and members else ""
        return f"{{{','.join(members)}{draw(_blank)}{trailing}{draw(_blank)}}}"

    return f"{draw(_blank)}{an_object(0)}{draw(_blank)}"


@given(documents())
@settings(max_examples=200, deadline=None)
def test_any_object_survives_installing_and_uninstalling(text: str) -> None:
    value: Any = plain_value(text)
    held = value.get("mcp", {})
    if not isinstance(held, dict):
        with pytest.raises(EditRefused):
            set_entry(text, "mcp", "us", {"command": "y"})
        return
    entry: dict[str, Any] = {"command": "y", "args": ["z"]}
    installed = set_entry(text, "mcp", "us", entry)
    assert plain_value(installed) == value | {"mcp": held | {"us": entry}}
    assert remove_entry(installed, "mcp", "us") == text


# ------------------------------------------------------------ files


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.delenv("SESSION_QUERY_DATA_DIR", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    return CommandLine(tmp_path / "data", capsys, monkeypatch)


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.*.bak"))


@pytest.mark.parametrize("host", TARGETS)
def test_the_command_line_installs_where_the_host_looks(cli: CommandLine, host: str) -> None:
    path = TARGETS[host].place({}, Path.home(), sys.platform)
    done = cli("mcp", "install", host)
    assert (done.status, str(path) in done.out) == (0, True), done.err
    entry = parsed(host, path.read_text("utf-8"))[TARGETS[host].container]["session-query"]
    words = [
        *([entry["command"]] if isinstance(entry["command"], str) else entry["command"]),
        *entry.get("args", []),
    ]
    assert words[-3:] == ["mcp", "--data-dir", str(cli.data_dir)]
    assert os.access(words[0], os.X_OK)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert backups(path) == []
    assert "nothing to change" in cli("mcp", "install", host).out
    assert "changed" in cli("mcp", "uninstall", host).out
    assert "session-query" not in path.read_text("utf-8")
    assert "nothing to change" in cli("mcp", "uninstall", host).out


def test_the_backup_is_the_file_as_it_was_mode_included(cli: CommandLine, tmp_path: Path) -> None:
    config = tmp_path / "settings.json"
    config.write_bytes(b'{"theme": "x"}')
    config.chmod(0o640)
    answer: Any = cli("mcp", "install", "gemini", "--config", str(config), "--json").json
    assert answer["changed"] is True
    assert [str(path) for path in backups(config)] == [answer["backup"]]
    assert backups(config)[0].read_bytes() == b'{"theme": "x"}'
    assert {stat.S_IMODE(path.stat().st_mode) for path in (config, *backups(config))} == {0o640}
    cli("mcp", "install", "gemini", "--config", str(config))
    assert len(backups(config)) == 1


def test_a_dry_run_shows_the_difference_and_changes_nothing(cli: CommandLine, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("model = 'x'\n")
    done = cli("mcp", "install", "codex", "--config", str(config), "--dry-run")
    assert "+[mcp_servers.session-query]" in done.out
    assert config.read_text() == "model = 'x'\n"
    assert backups(config) == []
    assert "+++" in cli("mcp", "install", "codex", "--config", str(tmp_path / "none.toml"), "--dry-run").out
    assert not (tmp_path / "none.toml").exists()


def test_print_shows_the_entry_and_touches_nothing(cli: CommandLine) -> None:
    done = cli("mcp", "install", "zed", "--print", "--workspace", "/home/ada/webshop", "--name", "history")
    arguments = json.loads(done.out)["context_servers"]["history"]["args"]
    assert arguments[-2:] == ["--workspace", "/home/ada/webshop"]
    assert str(TARGETS["zed"].place({}, Path.home(), sys.platform)) in done.err
    assert not (Path.home() / ".config").exists()
    assert tomllib.loads(cli("mcp", "install", "codex", "--print").out)["mcp_servers"]["session-query"]


def test_a_file_that_cannot_be_edited_is_told_and_left(cli: CommandLine, tmp_path: Path) -> None:
    config = tmp_path / "settings.json"
    for content in (b"{ not json", b"\xff\xfe{}"):
        config.write_bytes(content)
        done = cli("mcp", "install", "gemini", "--config", str(config))
        assert (done.status, "EDIT_REFUSED" in done.err, "--print" in done.err) == (3, True, True)
        assert config.read_bytes() == content
    assert backups(config) == []


def test_a_symbolic_link_stays_one(cli: CommandLine, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("{}")
    link = tmp_path / "mcp.json"
    link.symlink_to(real)
    assert cli("mcp", "install", "vscode", "--config", str(link)).status == 0
    assert link.is_symlink()
    assert "session-query" in real.read_text()


def test_a_file_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    file = read_config(path)
    path.write_text('{"theirs": 1}')
    with pytest.raises(EditRefused, match="changed meanwhile"):
        write_config(file, '{"ours": 1}', datetime.now(UTC))
    assert path.read_text() == '{"theirs": 1}'
    assert sorted(tmp_path.iterdir()) == [path]


def test_backups_of_one_second_do_not_overwrite_each_other(tmp_path: Path) -> None:
    path, now = tmp_path / "a.json", datetime(2031, 3, 5, 6, 7, 8, tzinfo=UTC)
    for number in range(3):
        path.write_text(str(number))
        write_config(read_config(path), "new", now)
    assert [backup.read_text() for backup in backups(path)] == ["1", "2", "0"]
    assert backups(path)[2].name == "a.json.20310305-060708.bak"


def test_a_directory_in_its_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(EditRefused, match="cannot be read"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("host", "platform", "environ", "expected"),
    [
        ("claude-code", "linux", {}, "/h/.claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("codex", "darwin", {}, "/h/.codex/config.toml"),
        ("codex", "linux", {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("gemini", "linux", {}, "/h/.gemini/settings.json"),
        ("opencode", "linux", {}, "/h/.config/opencode/opencode.json"),
        ("opencode", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/opencode/opencode.json"),
        ("zed", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/zed/settings.json"),
        ("zed", "darwin", {"XDG_CONFIG_HOME": "/x"}, "/h/.config/zed/settings.json"),
        ("zed", "win32", {"APPDATA": "/r"}, "/r/Zed/settings.json"),
        ("vscode", "linux", {}, "/h/.config/Code/User/mcp.json"),
        ("vscode", "darwin", {}, "/h/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", {}, "/h/AppData/Roaming/Code/User/mcp.json"),
    ],
)
def test_each_platform_has_its_place(
    host: str, platform: str, environ: dict[str, str], expected: str
) -> None:
    assert TARGETS[host].place(environ, Path("/h"), platform) == Path(expected)


def test_opencode_with_comments_is_taken_where_it_is_the_only_one(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text("{}")
    assert TARGETS["opencode"].place({}, tmp_path, "linux").name == "opencode.jsonc"
    (folder / "opencode.json").write_text("{}")
    assert TARGETS["opencode"].place({}, tmp_path, "linux").name == "opencode.json"


def test_every_sample_has_its_test() -> None:
    assert {path.name for path in CONFIGS.iterdir()} == set(SAMPLES)

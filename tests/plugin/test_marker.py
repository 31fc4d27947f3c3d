"""The marker, its fixtures, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpx_cassette._cassette import Cassette
from tests.plugin.conftest import Tested
from tests.plugin.programs.calls import record

#: In a file of tests: a model behind every real call, and recording allowed.
RECORDS = """
import httpx

pytestmark = pytest.mark.cassette(mode="record", next_transport=httpx.MockTransport(model))

"""


def files() -> list[str]:
    """Return the cassettes of the project."""
    return sorted(str(path) for path in Path().rglob("*.jsonl"))


def failure(told: str) -> list[str]:
    """Return the lines of the only failure."""
    lines = told.splitlines()
    begin = next(index for index, line in enumerate(lines) if line.startswith("__ "))
    end = next(index for index, line in enumerate(lines) if index > begin and line.startswith("== "))
    return lines[begin + 1 : end]


# -- the fixtures --------------------------------------------------------------------------------------


def test_the_fixture_tells_what_happened(tested: Tested) -> None:
    """``cassette`` counts hits and recordings, of its own test only."""
    ended = tested(
        test_it=RECORDS
        + """
def test_first(cassette):
    ask("a")
    ask("a")
    ask("b")
    assert (1, 2) == (cassette.hits, cassette.recorded)
    assert [1, 2] == [each.line for each in cassette.recordings]
    assert "cassettes/test_it.jsonl" == cassette.path

def test_second(cassette):
    ask("a")
    assert (1, 0) == (cassette.hits, cassette.recorded)
"""
    )

    assert 0 == ended.status, ended.text
    assert ["cassettes/test_it.jsonl"] == files()


def test_the_transport_serves_clients_of_both_libraries(tested: Tested) -> None:
    """``cassette_transport`` opens the cassette without a marker; to close a client twice closes nothing."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        test_it="""
    import anyio, httpx, httpx2

    def test_sync(cassette_transport, cassette):
        for library in (httpx, httpx2):
            client = library.Client(transport=cassette_transport)
            assert 200 == client.post(URL, json=body("a")).status_code
            client.close()
            client.close()
        assert 2 == cassette.hits

    def test_async(cassette_transport, cassette):
        async def main():
            for library in (httpx, httpx2):
                async with library.AsyncClient(transport=cassette_transport) as client:
                    assert 200 == (await client.post(URL, json=body("a"))).status_code
        anyio.run(main)
        assert 2 == cassette.hits
    """
    )

    assert 0 == ended.status, ended.text


def test_a_cassette_may_be_asked_for_late(tested: Tested) -> None:
    """``request.getfixturevalue`` opens it in the middle of a test, the first of the run."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        test_it="""
    def test_it(request):
        cassette = request.getfixturevalue("cassette")
        ask("a")
        assert 1 == cassette.hits
    """
    )

    assert 0 == ended.status, ended.text


def test_one_parameter_may_be_marked_alone(tested: Tested) -> None:
    """The others of the same function have no cassette."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        test_it="""
    @pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.cassette), 3])
    def test_it(number, request):
        assert (number == 2) == ("_open_cassette" in request.fixturenames)
        if number == 2:
            ask("a")
    """
    )

    assert 0 == ended.status, ended.text


def test_fixtures_of_every_scope_are_answered(tested: Tested) -> None:
    """The cassette is open before the fixtures of the test, those of its module too, and behind them."""
    record("cassettes/test_it.jsonl", "a", "b", "c")
    ended = tested(
        test_it="""
    @pytest.fixture(scope="module", autouse=True)
    def of_the_module():
        ask("a")
        yield
        ask("c")

    @pytest.fixture
    def of_the_test():
        ask("b")
        yield
        ask("b")

    @pytest.mark.cassette
    def test_it(of_the_test, cassette):
        assert 2 == cassette.hits
    """
    )

    assert 0 == ended.status, ended.text


@pytest.mark.parametrize(
    "where", ["class", "module", "package", "subclass"], ids=["class", "module", "package", "subclass"]
)
def test_the_marker_stands_anywhere(tested: Tested, where: str) -> None:
    """On a class, in a module, by a hook of a conftest file."""
    record("cassettes/test_it.jsonl", "a")
    texts = {
        "class": "@pytest.mark.cassette\nclass TestIt:\n    def test_it(self):\n        ask()\n",
        "module": "pytestmark = [pytest.mark.cassette]\n\ndef test_it():\n    ask()\n",
        "package": "def test_it():\n    ask()\n",
        "subclass": "import unittest\n\n@pytest.mark.cassette\nclass Base(unittest.TestCase):\n    pass\n\n"
        "class TestIt(Base):\n    def test_it(self):\n        ask()\n",
    }
    hook = """
    import pytest

    def pytest_collection_modifyitems(items):
        for item in items:
            item.add_marker(pytest.mark.cassette)
    """

    assert 0 == tested(test_it=texts[where], conftest=hook if where == "package" else "").status


# -- names and options ---------------------------------------------------------------------------------


def test_names_are_filled_in(tested: Tested) -> None:
    """Every test may have a file of its own, whatever it is parametrised with."""
    ended = tested(
        test_it=RECORDS
        + """
class TestIt:
    @pytest.mark.cassette("{module}/{class}/{test}")
    @pytest.mark.parametrize("word", ["a", "a/b:c", "größe", "\\x00", "x" * 300, "[{module}]"])
    def test_it(self, word):
        ask(word)
"""
    )

    assert 0 == ended.status, ended.text
    names = [Path(file).name for file in files()]
    assert ["cassettes/test_it/TestIt"] == sorted({str(Path(file).parent) for file in files()})
    assert 6 == len(names)
    assert "test_it[a].jsonl" in names
    assert 70 > max(map(len, names))


def test_what_is_nearer_wins(tested: Tested) -> None:
    """The test over its class, the class over the module, all of them over ``cassette_config``."""
    record("cassettes/near.jsonl", "a")
    ended = tested(
        test_it="""
    pytestmark = pytest.mark.cassette("of_the_module", chunk_size=2)

    @pytest.fixture(scope="module")
    def cassette_config():
        return {"name": "of_the_config", "chunk_size": 1, "noise": True}

    @pytest.mark.cassette("of_the_class")
    class TestIt:
        @pytest.mark.cassette("near")
        def test_it(self, cassette):
            ask()
            settings = cassette._session.settings
            assert ("cassettes/near.jsonl", 2, True) == (
                cassette.path, settings.chunk_size, settings.noise
            )
    """
    )

    assert 0 == ended.status, ended.text


def test_the_config_is_overridden_at_every_level(tested: Tested) -> None:
    """A conftest file, one of a folder below, and a module each see the value of the one above."""
    record("cassettes/abc.jsonl", "a")
    record("deeper/cassettes/abcd.jsonl", "a")
    Path("deeper/test_deep.py").write_text(
        "import pytest\nfrom calls import ask\n\n@pytest.mark.cassette\ndef test_it():\n    ask()\n"
    )
    Path("deeper/conftest.py").write_text(
        "import pytest\n\n@pytest.fixture(scope='package')\ndef cassette_config(cassette_config):\n"
        "    return {'name': cassette_config['name'] + 'bcd'}\n"
    )
    ended = tested(
        conftest="""
    import pytest

    @pytest.fixture(scope="session")
    def cassette_config(cassette_config):
        return {**cassette_config, "name": "a"}
    """,
        test_it="""
    @pytest.fixture
    def cassette_config(cassette_config):
        return {"name": cassette_config["name"] + "bc"}

    @pytest.mark.cassette
    def test_it():
        ask()
    """,
    )

    assert 0 == ended.status, ended.text


def test_a_test_runs_once_for_each_chunk_size(tested: Tested) -> None:
    """A list is a parameter; the fixture has the size of the run."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        test_it="""
    seen = []

    @pytest.mark.cassette(chunk_size=[1, 7, 64])
    @pytest.mark.parametrize("word", ["a"])
    def test_it(word, cassette, request):
        ask(word)
        size = cassette._session.settings.chunk_size
        assert f"test_it[chunk_size={size}-a]" == request.node.name
        seen.append(size)

    def test_all():
        assert [1, 7, 64] == seen
    """,
    )

    assert 0 == ended.status, ended.text


REFUSED = {
    "unknown option": (
        "@pytest.mark.cassette(chunksize=1)",
        "OptionError: @pytest.mark.cassette has no option 'chunksize' (did you mean 'chunk_size'?)",
    ),
    "unknown value": (
        "@pytest.mark.cassette(mode='rewind')",
        "OptionError: mode='rewind' is not a mode; there are live, record, replay, rerecord",
    ),
    "two names": (
        "@pytest.mark.cassette('a', 'b')",
        "OptionError: @pytest.mark.cassette takes one name and options by name, not 2 names",
    ),
    "a name twice": (
        "@pytest.mark.cassette('a', name='b')",
        "OptionError: @pytest.mark.cassette takes one name and options by name, not 1 names",
    ),
    "a name outside": (
        "@pytest.mark.cassette('../a')",
        "OptionError: cassette('../a') leaves the folder of the cassettes; name a file in it, such as "
        "'triage' or 'triage/refunds', and another folder with --cassette-dir",
    ),
    "allow_unused": (
        "@pytest.mark.cassette(allow_unused='yes')",
        "OptionError: allow_unused='yes' is not understood; it takes True or False",
    ),
    "guard": (
        "@pytest.mark.cassette(guard='localhost')",
        "OptionError: guard='localhost' is not understood; it takes True, False, or hosts to let through",
    ),
    "vcr as well": (
        "@pytest.mark.vcr\n@pytest.mark.cassette",
        "CassetteError: the test is marked with vcr as well, and both would record; take one marker off",
    ),
}


@pytest.mark.parametrize(("marker", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_understood_fails_the_test(tested: Tested, marker: str, reason: str) -> None:
    """The reason stands alone: none of the frames is the user's."""
    ended = tested("-p", "no:warnings", test_it=f"{marker}\ndef test_it():\n    ask()\n")

    assert 1 == ended.status
    assert [reason] == failure(ended.told)


def test_a_config_that_is_no_dict_is_refused(tested: Tested) -> None:
    """It says what it got."""
    ended = tested(
        test_it="""
    @pytest.fixture
    def cassette_config():
        return ["name"]

    @pytest.mark.cassette
    def test_it():
        ask()
    """
    )

    assert ["OptionError: cassette_config gives ['name']; it is to give a dict of options"] == failure(
        ended.told
    )


def test_no_chunk_size_is_no_skipped_test(tested: Tested) -> None:
    """An empty list is told to be no size; pytest alone would pass over the test."""
    ended = tested(
        test_it="""
    @pytest.mark.cassette(chunk_size=[])
    def test_it():
        ask()
    """
    )

    assert 1 == ended.status
    assert ["OptionError: chunk_size=[] runs the test with no size at all; give it at least one"] == failure(
        ended.told
    )


def test_chunk_sizes_need_a_test_function(tested: Tested) -> None:
    """A method of unittest cannot run once for each of them."""
    ended = tested(
        test_it="""
    import unittest

    @pytest.mark.cassette(chunk_size=[1, 7])
    class TestIt(unittest.TestCase):
        def test_it(self):
            ask()
    """
    )

    assert 1 == ended.status
    assert [
        "OptionError: only test functions run once for each chunk_size of a list; give a method of unittest, "
        "a doctest and cassette_config one number"
    ] == failure(ended.told)


def test_two_tests_of_one_file_have_the_same_rules(tested: Tested) -> None:
    """What is recorded under one key policy is not found under another."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        test_it="""
    from httpx_cassette import KeyPolicy

    @pytest.mark.cassette
    def test_first():
        ask()

    @pytest.mark.cassette(key_policy=KeyPolicy(host=False))
    def test_second():
        ask()

    @pytest.mark.cassette("another", key_policy=KeyPolicy(host=False), allow_unused=True)
    def test_third():
        pass
    """
    )

    assert 1 == ended.status
    assert [
        "OptionError: cassettes/test_it.jsonl: host is False here and the default in test_it.py::test_first, "
        "for one file: what is recorded under one is not found under the other; give this test a file of its "
        "own, cassette('name'), or say it for all in cassette_config"
    ] == failure(ended.told)


def test_a_cassette_that_cannot_be_read_fails_its_test(tested: Tested) -> None:
    """A folder in the place of the file is told, and the next test goes on."""
    Path("cassettes/test_it.jsonl").mkdir(parents=True)

    ended = tested(test_it="@pytest.mark.cassette\ndef test_it():\n    ask()\n\ndef test_next():\n    pass\n")

    assert "1 passed" in ended.told


def test_recordings_of_the_run_are_counted_once(tested: Tested) -> None:
    """Two tests that make the same call pay once."""
    ended = tested(test_it=RECORDS + "def test_a():\n    ask()\n\ndef test_b():\n    ask()\n")

    assert 0 == ended.status, ended.text
    assert 1 == len(Cassette("cassettes/test_it.jsonl"))
    assert "1 replayed, 1 recorded, 0 missed, 1 real call" in ended.told.splitlines()

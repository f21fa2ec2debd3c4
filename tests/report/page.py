#!/usr/bin/env python3
"""Judges the pages of osc_report: by their text, and with --browser as a browser shows them.

  page.py [--mpiexec M] [--env K=V]... --report OSC_REPORT [--browser] LOCKS CONTENDED COUNTED

The programs are slow_locks, test_contended and test_counted. Files of 2, 3 and 16 ranks are of jobs, those of 256 ranks are
made from the one of 16. Exit status 77 if --browser finds no browser.
"""
import argparse
import collections
import html.parser
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

BROWSERS = ("chromium-headless-shell", "chromium")
MANY = 256
SLOW = 77  # the rank of them that the others wait for


class Page(html.parser.HTMLParser):
    """What a page holds: its text, tables by caption, and what is wrong with its structure."""

    def __init__(self, text):
        super().__init__()
        self.text, self.tables, self.wrong, self.ids, self.targets = [], {}, [], [], []
        self._open, self._rows, self._caption, self._level, self._pictures, self._details = [], [], [], 0, [], 0
        self.feed(text)
        self.close()
        self.words = re.sub(r"\s+", " ", " ".join(self.text))
        if self._open:
            self.wrong.append("not closed: %s" % self._open)
        self.wrong += ["two elements have the id %s" % name for name, count in collections.Counter(self.ids).items() if count > 1]
        self.wrong += ["no element has the id %s" % name for name in self.targets if name not in self.ids]

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        if tag not in ("meta", "img", "br", "link"):
            self._open.append(tag)
        if "id" in of:
            self.ids.append(of["id"])
        for name, value in attributes:
            if name in ("href", "src", "xlink:href", "srcset", "action", "data", "poster"):
                if value.startswith("#"):
                    self.targets.append(value[1:])
                elif not value.startswith("data:image/png;base64,"):
                    self.wrong.append("the page refers to %s" % value)
            self.wrong += ["the page refers to %s" % where for where in re.findall(r"url\((?!#)[^)]*\)", value or "")]
            if name == "aria-labelledby":
                self.targets += value.split()
            if name.startswith("on"):
                self.wrong.append("%s has %s" % (tag, name))
        if tag in ("script", "iframe", "object", "embed", "link"):
            self.wrong.append("the page has %s" % tag)
        if re.fullmatch("h[1-6]", tag):
            if int(tag[1]) > self._level + 1:
                self.wrong.append("%s follows h%d" % (tag, self._level))
            self._level = int(tag[1])
        if tag == "svg" and (of.get("role") != "img" or not of.get("aria-label")):
            self.wrong.append("a picture says nothing to a screen reader: %s" % of)
        if tag == "html" and of.get("lang") != "en":
            self.wrong.append("no language")
        if tag == "table":
            self._rows, self._caption = [], []
            if "tabindex" not in self._around:
                self.wrong.append("a keyboard cannot scroll a table")
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th"):
            self._rows[-1].append("")
            if tag == "th" and of.get("scope") not in ("row", "col"):
                self.wrong.append("a head of a table without scope")
        if tag == "div":
            self._around = of

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.wrong.append("%s is closed and not open" % tag)
        if tag == "table":
            self.tables["".join(self._caption)] = self._rows

    def handle_data(self, data):
        if self._open and self._open[-1] in ("td", "th"):
            self._rows[-1][-1] += data
        elif self._open and self._open[-1] == "caption":
            self._caption.append(data)
        if "style" not in self._open:
            self.text.append(data)


def of_time(text):
    """Seconds."""
    if text in ("0", "", "not timed"):
        return 0.0
    value, unit = text.split()
    return float(value) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]


def close(text, seconds):
    return abs(of_time(text) - seconds) <= 0.006 * seconds + 1e-9


class Check:
    def __init__(self, args, folder):
        self.args, self.folder, self.wrong = args, folder, []

    def expect(self, true, what):
        if not true:
            self.wrong.append(str(what))

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_job(self, name, ranks, program, *options):
        """The files of a job: its statistics and its timeline."""
        statistics, timeline = self.path(name + ".json"), self.path(name + ".timeline.json")
        command = [self.args.mpiexec, "-n", str(ranks)]
        for setting in self.args.env + ["OSC_STATS=" + statistics, "OSC_TRACE=" + timeline]:
            command += ["-genv"] + setting.split("=", 1)
        job = subprocess.run(["timeout", "-k", "5", "100"] + command + [program, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             check=False)
        if job.returncode != 0 or not os.path.exists(statistics):
            raise SystemExit("%s failed: %s" % (program, job.stdout.decode(errors="replace")))
        return statistics, timeline

    def report(self, *options):
        return subprocess.run([self.args.report, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=300)

    def make(self, name, statistics, timeline=None):
        """The page of files, and its path."""
        path = self.path(name + ".html")
        made = self.report(statistics, "-o", path, *(("-t", timeline) if timeline else ()))
        if made.returncode != 0 or made.stderr:
            raise SystemExit("osc_report %s: %d, %s" % (name, made.returncode, made.stderr.decode()))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        page = Page(text)
        self.wrong += ["%s: %s" % (name, what) for what in page.wrong]
        self.expect("prefers-color-scheme:dark" in text and ":focus-visible{outline" in text, name + ": no colours, or no focus")
        self.expect("default-src 'none'" in text, name + ": no policy against the network")
        return page, path

    def judge(self, name, page, document):
        """The tables of the page against the file."""
        def says(true, what):
            self.expect(true, "%s: %s" % (name, what))
        for finding in document["advice"]:
            says(all(finding[key] in page.words for key in ("window", "finding", "remedy")), "lacks the advice " + finding["finding"])
        for window in document["windows"]:
            title = window["title"]
            calls = page.tables.get("Calls of " + title)
            if not window["operations"] and not window["synchronisation"]:
                says(calls is None, "has calls of " + title)
                continue
            if "\ufffd" in title or calls is None:
                says("\ufffd" in title or calls is not None or len(document["windows"]) > 8, "lacks " + title)
                continue
            wanted = {(kind, path): (by["operations"], by["seconds"], by["waiting_seconds"])
                      for kind, of in window["kinds"].items() for path, by in of["paths"].items()}
            wanted |= {(call, ""): (of["calls"], of["seconds"], of["waiting_seconds"]) for call, of in window["synchronisation"].items()}
            found = {(row[0], row[1]): row for row in calls[1:]}
            says(set(found) == set(wanted), "%s: calls %s, not %s" % (title, set(found), set(wanted)))
            for key, (count, seconds, waiting) in wanted.items():
                row = found.get(key, [""] * 8)
                says(row[2] == "{:,}".format(count) and close(row[5], seconds) and close(row[6], waiting), "%s: %s, not %s" % (title, row, wanted[key]))
            for path, of in window["paths"].items():
                rows = [row for row in page.tables["Paths of operations on " + title] if row[0] == path]
                says([row[2] for row in rows] == ["{:,}".format(of["operations"])], "%s: path %s" % (title, rows))
            ranks = page.tables.get("Ranks of " + title)
            if ranks is not None:
                says([row[0] for row in ranks[1:]] == [str(rank["rank"]) for rank in window["ranks"]], title + ": ranks")
                for row, rank in zip(ranks[1:], window["ranks"]):
                    says(close(row[7], rank["waiting_seconds"] + rank["operations_waiting_seconds"]), "%s: rank %s" % (title, row))
            waits = sorted(((seconds, rank["rank"], peer) for rank in window["ranks"] for peers in rank["waits"].values()
                            for peer, seconds in peers.items()), reverse=True)
            if waits:
                longest = page.tables["Longest waits of " + title][1]
                says(close(longest[3], waits[0][0]) and longest[0] == str(waits[0][1]) and longest[1] in (waits[0][2], "no certain one", "further ones"),
                     "%s: the longest wait is %s, not %s" % (title, longest, waits[0]))


def many_ranks(document):
    """A file of 256 ranks from one of fewer: all wait for the lock of one rank."""
    made = json.loads(json.dumps(document))
    window = max(made["windows"], key=lambda found: found["operations"])
    some = window["ranks"]
    times = MANY // len(some)
    made["processes"] = made["reporting"] = window["processes"] = MANY
    made["windows"] = [window]
    window["ranks"] = []
    for rank in range(MANY):
        window["ranks"].append(json.loads(json.dumps(some[rank % len(some)])) | {"rank": rank, "world_rank": rank})
        lock = {str((rank + 1) % MANY): 0.001} | {str(SLOW): 0.5 if rank == 200 else 0.25}
        window["ranks"][-1]["waits"] = {} if rank == SLOW else {"lock": lock}
        window["ranks"][-1]["fences_last"] = 300 if rank == SLOW else 1
    for counted in [window, *window["paths"].values(), *window["synchronisation"].values(), *window["kinds"].values(),
                    *(by for of in window["kinds"].values() for by in of["paths"].values())]:
        for key, value in counted.items():
            if isinstance(value, (int, float)) and key != "processes":
                counted[key] = value * times
    return made


def pages(check):
    """Those of 2, 3, 16 and 256 ranks, with what their first lines must say."""
    locks, contended, counted = check.args.programs
    made = {}
    for name, ranks, program, options, lines in (
            ("locks", 2, locks, ("slow", "2000"), ["call MPI_Win_lock_all once", "What to do", "Timeline"]),
            ("contended", 3, contended, (), ["Ranks waited most for rank 0", "mostly for its lock"]),
            ("counted", 16, counted, (), ["window 'created'", "Where time went"])):
        statistics, timeline = check.run_job(name, ranks, program, *options)
        with open(statistics, encoding="utf-8") as file:
            document = json.load(file)
        for title, files in ((name, (statistics,)), (name + " with its timeline", (statistics, timeline))):
            page, path = check.make(title.split()[0] + str(len(files)), *files)
            check.judge(title, page, document)
            for line in lines if len(files) == 2 else [line for line in lines if line != "Timeline"]:
                check.expect(line in page.words, "%s: lacks '%s'" % (title, line))
            made[title] = (page, path)
    # In each of its rounds rank 1 waits for the lock of rank 0, by the statistics and by the timeline.
    for title, caption in (("contended", "Longest waits of window 1 (MPI_Win_allocate)"), ("contended with its timeline", "Longest waits of the timeline")):
        rows = made[title][0].tables[caption]
        check.expect(["1", "0", "its lock"] in [row[:3] for row in rows], "%s: waits %s" % (title, rows))
        check.expect(not any(row[2] == "its lock" and row[:2] != ["1", "0"] for row in rows), "%s: locks %s" % (title, rows))
    many = many_ranks(document)
    statistics = check.path("many.json")
    with open(statistics, "w", encoding="utf-8") as file:
        json.dump(many, file)
    page, path = check.make("many", statistics)
    check.judge("many", page, many)
    for line in ("256 ranks", "Ranks waited most for rank 77: 64 s, which", "rank 77 came last to 300 of the 555 fences"):
        check.expect(line in page.words, "many: lacks '%s'" % line)
    check.expect(os.path.getsize(path) < 1 << 20, "many: %d bytes" % os.path.getsize(path))
    made["many"] = (page, path)
    return made


def known_timeline(check):
    """A timeline of three ranks whose waits are known: a fence that rank 2 enters last, a lock in a window that numbers the
    ranks the other way round, and a wait of libosc's own thread, which is none of the program."""
    with open(check.path("contended.json"), encoding="utf-8") as file:
        document = json.load(file)
    for rank in document["windows"][0]["ranks"]:
        rank["world_rank"] = 2 - rank["rank"]
    title = document["windows"][0]["title"]

    def event(rank, name, category, begin, length, thread=1):
        return {"ph": "X", "name": name, "cat": category, "pid": rank, "tid": thread, "ts": begin, "dur": length, "args": {"window": title}}

    events = [{"ph": "M", "name": "thread_name", "pid": 0, "tid": 2, "args": {"name": "libosc: osc-network"}},
              event(0, "wait for the lock of 2", "wait", 5, 900000, 2)]
    for rank, begin in ((0, 100), (1, 300), (2, 1000)):
        if rank != 2:
            events.append(event(rank, "wait for the others", "wait", begin, 1000 - begin))
        events.append(event(rank, "MPI_Win_fence", "synchronisation", begin, 1001 - begin))
    events += [event(1, "wait for the lock of 0", "wait", 2000, 5000), event(1, "MPI_Win_lock", "synchronisation", 2000, 5001)]
    facts = {"producer": "libosc", "processes": 3, "dropped": 0}
    names = [check.path("known.json"), check.path("known.timeline.json")]
    for dropped, wanted in ((0, {("0", "2", "its fence", "900 µs"), ("1", "2", "its fence", "700 µs"), ("1", "2", "its lock", "5 ms")}),
                            (7, {("0", "no certain one", "all ranks, in a fence or a free", "900 µs"), ("1", "2", "its lock", "5 ms"),
                                 ("1", "no certain one", "all ranks, in a fence or a free", "700 µs")})):
        texts = [json.dumps(document), '{"displayTimeUnit":"ns",\n"otherData":%s,\n"traceEvents":[\n%s\n]}\n' % (
            json.dumps(facts | {"dropped": dropped}, separators=(",", ":")), ",\n".join(json.dumps(one, separators=(",", ":")) for one in events))]
        for name, text in zip(names, texts):
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        page, _ = check.make("known", *names)
        # 0.9 ms and 5.7 ms of 6.901 ms.
        shares = [row[:2] for row in page.tables["Share of time that each rank waited, in tenths of the timeline"][1:]]
        check.expect(shares == [["0", "13 %"], ["1", "83 %"], ["2", "0 %"]], "shares %s" % shares)
        rows = {tuple(row) for row in page.tables["Longest waits of the timeline"][1:]}
        check.expect(rows == wanted, "%d dropped: waits %s, not %s" % (dropped, rows, wanted))
        check.expect(("The timeline lacks 7 records" in page.words) == (dropped == 7), "%d dropped: the page says otherwise" % dropped)


def refusals(check):
    """Files and arguments of which there is no page: one line, exit status 2, and what lies there stays."""
    with open(check.path("locks.json"), encoding="utf-8") as file:
        good = file.read()
    with open(check.path("locks.timeline.json"), encoding="utf-8") as file:
        timeline = file.read()
    document = json.loads(good)
    without = {key: value for key, value in document.items() if key != "windows"}
    wrong_rank = json.loads(good)
    wrong_rank["windows"][0]["ranks"][0]["waits"] = {"lock": {"2": 1.0}}
    files = {"empty": "", "cut": good[:len(good) // 2], "foreign": '{"a": [1, 2]}', "list": "[]", "text": "no JSON", "deep": "[" * 100000,
             "newer": json.dumps(document | {"version": 2}), "without": json.dumps(without), "no_rank": json.dumps(wrong_rank),
             "timeline": timeline, "negative": good.replace('"operations": ', '"operations": -'), "nan": good.replace('"seconds": 0', '"seconds": NaN')}
    for name, text in files.items():
        with open(check.path("bad_%s.json" % name), "w", encoding="utf-8") as file:
            file.write(text)
    with open(check.path("bad_bytes.json"), "wb") as file:
        file.write(bytes(range(256)))
    for name, text in {"t_empty": "", "t_cut": timeline[:len(timeline) // 2], "t_lines": "\n".join(timeline.split("\n")[:100]), "t_foreign": good,
                       "t_other": timeline.replace('"processes":2', '"processes":3', 1)}.items():
        with open(check.path(name + ".json"), "w", encoding="utf-8") as file:
            file.write(text)
    output = check.path("refused.html")
    calls = [[check.path("bad_%s.json" % name)] for name in (*files, "bytes")] + [[check.path("missing.json")], [check.folder]]
    calls += [[check.path("locks.json"), "-t", check.path(name + ".json")] for name in ("t_empty", "t_cut", "t_lines", "t_foreign", "t_other", "missing")]
    calls = [[*call, "-o", output] for call in calls] + [
        [], ["--unknown"], [check.path("locks.json"), "more", "-o", output], [check.path("locks.json"), "-o"],
        [check.path("locks.json"), "-o", check.path("locks.json")], [check.path("locks.json"), "-o", check.path("no folder/page.html")]]
    for at, call in enumerate(calls):
        before = "kept" if at % 2 else None
        if before:
            with open(output, "w", encoding="utf-8") as file:
                file.write(before)
        refused = check.report(*call)
        said = refused.stderr.decode(errors="replace")
        check.expect(refused.returncode == 2 and re.fullmatch(r"osc_report: [^\n]+\n", said) and not refused.stdout,
                     "osc_report %s: %d, '%s'" % (call, refused.returncode, said[-400:]))
        after = None
        if os.path.exists(output):
            with open(output, encoding="utf-8") as file:
                after = file.read()
            os.unlink(output)
        check.expect(after == before, "osc_report %s: wrote" % call)
    with open(check.path("locks.json"), encoding="utf-8") as file:
        check.expect(file.read() == good, "a call changed its file")


def browse(check, browser, url, proxy, *options):
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + check.path("browser"),
                           "--proxy-server=127.0.0.1:%d" % proxy, "--window-size=1060,4000", "--hide-scrollbars", *options, url],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120)
    check.expect(done.returncode == 0, "%s: %d, %s" % (url, done.returncode, done.stderr.decode(errors="replace")[-400:]))
    return done.stdout.decode(errors="replace")


def in_browser(check, browser, made):
    """The text that the browser has of each page; pictures in both colours; nothing asks the network, which a proxy sees."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        port = proxy.getsockname()[1]
        proxy.settimeout(0)

        def asked():
            try:
                proxy.accept()[0].close()
                return True
            except BlockingIOError:
                return False

        for name in ("locks with its timeline", "counted with its timeline", "many"):
            page, path = made[name]
            shown = Page(browse(check, browser, "file://" + path, port, "--dump-dom"))
            check.expect(shown.words == page.words and len(page.words) > 1000, name + ": the browser has another text")
            check.expect(shown.tables == page.tables, name + ": the browser has other tables")
            sizes = []
            for scheme in (0, 1):
                picture = "%s.%d.png" % (path, scheme)
                browse(check, browser, "file://" + path, port, "--screenshot=" + picture, "--blink-settings=preferredColorScheme=%d" % scheme)
                with open(picture, "rb") as file:
                    sizes.append(file.read())
            check.expect(min(map(len, sizes)) > 20000 and sizes[0] != sizes[1], name + ": dark and light look alike, or are empty")
            check.expect(not asked(), name + ": asked the network")
        # The proxy sees what does.
        path = check.path("asks.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write('<!DOCTYPE html><html lang="en"><img src="http://example.invalid/a.png"></html>')
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + check.path("browser"), "--timeout=3000",
                        "--proxy-server=127.0.0.1:%d" % port, "--dump-dom", "file://" + path], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False, timeout=120)
        check.expect(asked(), "the proxy does not see a page that asks the network")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--report", required=True)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("programs", nargs=3)
    args = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if args.browser and browser is None:
        print("SKIPPED: no browser looks at the pages of osc_report; sh cmake/install-packages.sh evidence installs one")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        check = Check(args, folder)
        made = pages(check)
        if args.browser:
            in_browser(check, browser, made)
        else:
            known_timeline(check)
            refusals(check)
    print("\n".join(check.wrong) if check.wrong else "the pages say what the files have")
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

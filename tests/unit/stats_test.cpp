// Counters, the encoding and the sums of a job's statistics, names, JSON, and the advice on made-up figures.
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "stats/report.h"

namespace {

using namespace osc::stats;

constexpr std::uint64_t kSecond = 1000000000;
using Values = std::map<std::size_t, std::uint64_t>;

WindowReport window(const char* name, const std::vector<Values>& ranks) {
    WindowReport made;
    made.id = 7;
    made.name = name;
    made.made_by = "MPI_Win_create";
    made.processes = static_cast<std::uint32_t>(ranks.size());
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
        made.members.push_back({rank, rank, {ranks[rank].begin(), ranks[rank].end()}, {}});
    return made;
}

std::vector<Finding> advice(const WindowReport& on) {
    Report report;
    report.processes = report.reporting = on.processes;
    report.windows.push_back(on);
    finish(report);
    return advise(report);
}

TEST(Counters, ClassesOfSize) {
    EXPECT_EQ(size_class(0), 0u);
    for (std::size_t size = 0; size + 1 < kSizes; ++size) {
        EXPECT_EQ(size_class(largest_of(size)), size);
        EXPECT_EQ(size_class(largest_of(size) + 1), size + 1);
    }
    EXPECT_EQ(size_class(~std::uint64_t{0}), kSizes - 1);
}

TEST(Counters, EachKindAndPathAndSizeAlone) {
    Counters counters(false);
    std::uint64_t times = 0;
    for (std::size_t kind = 0; kind < kKinds; ++kind)
        for (std::size_t path = 0; path < kPaths; ++path)
            for (std::size_t size = 0; size < kSizes; ++size, ++times)
                for (std::uint64_t i = 0; i <= times % 5; ++i)
                    counters.operation(static_cast<Kind>(kind), static_cast<DataPath>(path), largest_of(size));
    times = 0;
    for (std::size_t kind = 0; kind < kKinds; ++kind)
        for (std::size_t path = 0; path < kPaths; ++path)
            for (std::size_t size = 0; size < kSizes; ++size, ++times) {
                const std::size_t at = index_of(static_cast<Kind>(kind), static_cast<DataPath>(path), size);
                ASSERT_EQ(counters.value(at), times % 5 + 1);
                ASSERT_EQ(counters.value(at + kBytes), (times % 5 + 1) * largest_of(size));
            }
    for (std::size_t at = kFirstSync; at < kValues; ++at)
        EXPECT_EQ(counters.value(at), 0u);
}

TEST(Counters, Reroutes) {
    Counters counters(false);
    for (int i = 0; i < 2; ++i) {
        counters.operation(Kind::Put, DataPath::Message, 100);
        counters.took(index_of(Kind::Put, DataPath::Message, kTimedOperations), 30, 10);
    }
    counters.reroute(Kind::Put, DataPath::Message, DataPath::Direct, 100);
    for (const DataPath path : {DataPath::Message, DataPath::Direct}) {
        EXPECT_EQ(counters.value(index_of(Kind::Put, path, size_class(100))), 1u);
        EXPECT_EQ(counters.value(index_of(Kind::Put, path, size_class(100), kBytes)), 100u);
        EXPECT_EQ(counters.value(index_of(Kind::Put, path, kTimedOperations)), 1u);
        EXPECT_EQ(counters.value(index_of(Kind::Put, path, kOperationNs)), 30u);
        EXPECT_EQ(counters.value(index_of(Kind::Put, path, kOperationWaiting)), 10u);
    }
}

TEST(Counters, ThreadsLoseNothing) {
    constexpr std::uint64_t kCalls = 20000;
    Counters counters(true);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (std::uint64_t call = 0; call < kCalls; ++call) {
                counters.operation(Kind::Put, DataPath::LoadStore, 8);
                counters.synchronisation(Sync::Win_flush, kCallsMade);
                counters.other(Other::LockContended);
            }
        });
    threads.clear();
    EXPECT_EQ(counters.value(index_of(Kind::Put, DataPath::LoadStore, 0)), 4 * kCalls);
    EXPECT_EQ(counters.value(index_of(Kind::Put, DataPath::LoadStore, 0, kBytes)), 32 * kCalls);
    EXPECT_EQ(counters.value(index_of(Sync::Win_flush, kCallsMade)), 4 * kCalls);
    EXPECT_EQ(counters.value(index_of(Other::LockContended)), 4 * kCalls);
}

TEST(Waits, AddUpByWhatAndPeer) {
    WaitTable table;
    table.add(Wait::Lock, 3, 5);
    table.add(Wait::Lock, 3, 2);
    table.add(Wait::Post, 3, 40);
    table.add(Wait::All, kNoPeer, 1);
    table.add(Wait::Lock, 4, 0);  // nothing
    const std::vector<Waited> all = table.longest(8);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_TRUE(all[0].what == Wait::Post && all[0].peer == 3 && all[0].ns == 40);
    EXPECT_TRUE(all[1].what == Wait::Lock && all[1].peer == 3 && all[1].ns == 7);
    EXPECT_TRUE(all[2].what == Wait::All && all[2].peer == kNoPeer && all[2].ns == 1);
}

// More peers than a table has room for: no time is lost, and the longest waits of those that it has are first.
TEST(Waits, OfManyPeersKeepTheSum) {
    WaitTable table;
    constexpr std::uint32_t kPeers = 3 * WaitTable::kPeers;
    std::uint64_t sum = 0;
    for (std::uint32_t peer = 0; peer < kPeers; ++peer)
        for (const Wait what : {Wait::Lock, Wait::Operations}) {
            table.add(what, peer, peer + 1);
            sum += peer + 1;
        }
    const std::vector<Waited> most = table.longest(4);
    ASSERT_EQ(most.size(), 6u);
    std::uint64_t found = 0;
    for (const Waited& waited : most)
        found += waited.ns;
    EXPECT_EQ(found, sum);
    for (std::size_t i = 0; i < most.size(); ++i)
        EXPECT_EQ(most[i].peer == kFurtherPeers, i >= 4) << i;
    EXPECT_TRUE(most[4].what == Wait::Lock && most[5].what == Wait::Operations);
    EXPECT_GE(most[0].ns, most[3].ns);
}

TEST(Waits, GoToTheirWindow) {
    Record& mine = open(2001, 0, "MPI_Win_create", false);
    add_wait(2001, Wait::Lock, 1, 30);
    add_wait(2002, Wait::Lock, 1, 30);  // of no window that counts
    add_wait(2001, Wait::Lock, 1, 12);
    const std::vector<Waited> waits = mine.waits.longest(8);
    ASSERT_EQ(waits.size(), 1u);
    EXPECT_EQ(waits[0].ns, 42u);
}

TEST(Counters, NamesAddUp) {
    Counters counters(false);
    counters.operation(Kind::Put, DataPath::Message, 8);
    counters.operation(Kind::Put, DataPath::Direct, 5000);
    counters.operation(Kind::Rget, DataPath::Message, 64);
    counters.took(index_of(Kind::Put, DataPath::Message, kTimedOperations), 30, 7);
    counters.took(index_of(Kind::Rget, DataPath::Message, kTimedOperations), 5, 0);
    counters.synchronisation(Sync::Win_fence, kWaiting, 12);
    counters.other(Other::LockHandOvers, 3);
    const std::map<std::string, std::uint64_t> wanted = {
        {"operations", 3},
        {"bytes", 5072},
        {"put.operations", 2},
        {"put.message.bytes", 8},
        {"message.operations", 2},
        {"to_64.bytes", 64},
        {"put.direct.to_32768.operations", 1},
        {"get.operations", 0},
        {"put.message.ns", 30},
        {"put.timed_operations", 1},
        {"ns", 35},
        {"waiting_ns", 7},
        {"fence.waiting_ns", 12},
        {"locks.handed_over", 3},
        {"fence.calls", 0},
    };
    for (const auto& [name, value] : wanted) {
        std::uint64_t found = 99;
        EXPECT_TRUE(look_up(counters, name.c_str(), found)) << name;
        EXPECT_EQ(found, value) << name;
    }
    for (const char* name :
         {"", "put", "put.calls", "fence", "fence.bytes", "message.put.bytes", "operations.", "locks", "put.to_8.ns"}) {
        std::uint64_t found = 0;
        EXPECT_FALSE(look_up(counters, name, found)) << name;
    }
}

// The cells of the table's line that begins with `call`.
std::vector<std::string> row_of(const std::string& table, const std::string& call) {
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line.substr(line.find(' ')));
        std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
        if (!row.empty() && row.front() == call) return row;
    }
    return {};
}

TEST(Table, HasTimesOfTimedCallsOnly) {
    Report report;
    report.processes = report.reporting = 1;
    report.windows.push_back(
        window("times", {{{index_of(Kind::Put, DataPath::LoadStore, 0), 3},
                          {index_of(Kind::Put, DataPath::LoadStore, 0, kBytes), 3 * 512},
                          {index_of(Kind::Fetch_and_op, DataPath::Message, 0), 2},
                          {index_of(Kind::Fetch_and_op, DataPath::Message, kTimedOperations), 2},
                          {index_of(Kind::Fetch_and_op, DataPath::Message, kOperationNs), 1500000},
                          {index_of(Kind::Fetch_and_op, DataPath::Message, kOperationWaiting), 1000},
                          {index_of(Sync::Win_flush, kCallsMade), 4}}}));
    finish(report);
    const std::string text = table_of(report, {}, {});
    using Row = std::vector<std::string>;
    EXPECT_EQ(row_of(text, "call"), (Row{"call", "count", "path", "KiB", "time/ms", "wait/ms", "sizes"})) << text;
    EXPECT_EQ(row_of(text, "put"), (Row{"put", "3", "load_store", "1.5", "-", "-", "3", "to", "8", "B"})) << text;
    EXPECT_EQ(row_of(text, "fetch_and_op"),
              (Row{"fetch_and_op", "2", "message", "0.0", "1.500", "0.001", "2", "to", "8", "B"}))
        << text;
    EXPECT_EQ(row_of(text, "flush"), (Row{"flush", "4", "-", "-"})) << text;
}

TEST(Table, SaysHowManyOperationsOfEachSize) {
    Report report;
    report.processes = report.reporting = 1;
    report.windows.push_back(window("sizes", {{{index_of(Kind::Put, DataPath::Direct, 0), 3},
                                               {index_of(Kind::Put, DataPath::Direct, kSizes - 2), 4},
                                               {index_of(Kind::Put, DataPath::Direct, kSizes - 1), 5}}}));
    finish(report);
    const std::string text = table_of(report, {}, {});
    EXPECT_NE(text.find("  3 to 8 B, 4 to "), std::string::npos) << text;
    EXPECT_NE(text.find(", 5 larger"), std::string::npos) << text;
}

// Two "processes" with the records of this one: sums double, and windows are matched by their number.
TEST(Report, EncodedRecordsAddUp) {
    Record& first = open(1001, 1, "MPI_Win_create", false);
    Record& failed = open(1002, 0, "MPI_Win_create", false);
    Record& second = open(1003, 0, "MPI_Win_allocate", true);
    failed.operation(Kind::Put, DataPath::Message, 1);
    first.operation(Kind::Put, DataPath::LoadStore, 8);
    second.operation(Kind::Get, DataPath::Direct, 1 << 20);
    add_wait(1003, Wait::Post, 1, 700);
    const auto describe_as = [](Record& record, const std::string& name) {
        describe(record, [&](Record& changed) {
            changed.processes = 2;
            changed.name = name;
        });
    };
    describe_as(first, "");
    describe_as(second, "eleven char");
    const std::vector<std::uint8_t> bytes = encode(std::vector<std::uint64_t>{5, 6});
    Report report;
    add(report, 0, bytes);
    host_served().operation(Kind::Accumulate, DataPath::Host, 3);
    add(report, 1, encode(std::vector<std::uint64_t>{1, 1}));
    finish(report);
    EXPECT_EQ(report.reporting, 2u);
    EXPECT_EQ(report.totals, (std::vector<std::uint64_t>{6, 7}));
    ASSERT_EQ(report.windows.size(), 3u);
    EXPECT_EQ(report.windows[0].id, 1001u);
    EXPECT_EQ(report.windows[0].title(), "window 1 (MPI_Win_create)");
    EXPECT_EQ(report.windows[0].of(Kind::Put, DataPath::LoadStore), 2u);
    EXPECT_EQ(report.windows[1].title(), "window 'eleven char'");
    EXPECT_EQ(report.windows[1].of_kind(Kind::Get, kBytes), std::uint64_t{2} << 20);
    EXPECT_EQ(report.windows[1].members.size(), 2u);
    EXPECT_EQ(report.windows[1].members[1].world_rank, 1u);
    ASSERT_EQ(report.windows[1].members[1].waits.size(), 1u);
    EXPECT_EQ(report.windows[1].members[1].waits[0].ns, 700u);
    EXPECT_EQ(report.windows[2].id, kHostServed);
    EXPECT_EQ(report.windows[2].operations(), 1u);
    // Of a cut or empty text nothing counts but the process.
    Report cut;
    const std::size_t whole = bytes.size() - sizeof(std::uint64_t);
    for (std::size_t length = 0; length <= whole; ++length)
        add(cut, 0, std::span(bytes).first(length));
    EXPECT_EQ(cut.reporting, whole + 1);
    EXPECT_TRUE(cut.windows.empty());
}

TEST(Json, EscapesAndKeepsTheOrder) {
    Report report;
    report.processes = report.reporting = 1;
    report.windows.push_back(
        window("a\"\\\n\x01\xc3\xa9\xff",
               {{{index_of(Sync::Win_fence, kCallsMade), 2}, {index_of(Sync::Win_fence, kNanoseconds), 1500000000}}}));
    finish(report);
    report.totals = {3};
    const char* const names[] = {"network.retries"};
    const std::string text = json_of(report, {}, names);
    EXPECT_EQ(text.find("{\n  \"version\": 1,\n  \"processes\": 1,\n  \"reporting\": 1,\n  \"counters\": {\n    "
                        "\"network.retries\": 3\n  },\n  \"windows\": [\n    {\n      \"name\": "
                        "\"a\\\"\\\\\\n\\u0001\xc3\xa9\xef\xbf\xbd\",\n"),
              0u)
        << text;
    EXPECT_NE(text.find("\"calls\": 2,\n          \"timed_calls\": 0,\n          \"seconds\": 1.5,\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("\"kinds\": {},\n"), std::string::npos) << text;
}

TEST(Json, SaysForWhomARankWaited) {
    Report report;
    report.processes = report.reporting = 1;
    report.windows.push_back(window("w", {{{index_of(Kind::Put, DataPath::Message, kOperationNs), 3000000000},
                                           {index_of(Kind::Put, DataPath::Message, kOperationWaiting), 2000000000}}}));
    report.windows[0].members[0].waits = {
        {Wait::Lock, 12, 2000000000}, {Wait::All, kNoPeer, 1500000000}, {Wait::Lock, kFurtherPeers, 500000000}};
    finish(report);
    const std::string text = json_of(report, {}, {});
    EXPECT_NE(text.find("\"operations_seconds\": 3.0,\n          \"operations_waiting_seconds\": 2.0,\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("\"waits\": {\n            \"lock\": {\n              \"12\": 2.0,\n"
                        "              \"others\": 0.5\n            },\n            \"all\": {\n"
                        "              \"any\": 1.5\n            }\n          }\n"),
              std::string::npos)
        << text;
}

TEST(Advice, NothingOnAGoodProgram) {
    const Values good = {{index_of(Kind::Put, DataPath::LoadStore, 0), 100000},
                         {index_of(Sync::Win_lock_all, kCallsMade), 1},
                         {index_of(Sync::Win_flush, kCallsMade), 1000},
                         {index_of(Sync::Win_fence, kWaiting), kSecond / 10},
                         {index_of(Other::Lifetime), kSecond}};
    EXPECT_TRUE(advice(window("good", {good, good})).empty());
}

TEST(Advice, FencesThatWaitForOneRank) {
    const Values waits = {{index_of(Sync::Win_fence, kWaiting), kSecond * 98 / 100},
                          {index_of(Other::Lifetime), kSecond},
                          {index_of(Other::FenceLast), 1}};
    // On one node the last arrivals decide, although this process waits too.
    const Values last = {{index_of(Sync::Win_fence, kWaiting), kSecond * 98 / 100},
                         {index_of(Other::Lifetime), kSecond},
                         {index_of(Other::FenceLast), 90}};
    const auto found = advice(window("halo", {waits, waits, waits, last}));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].window, "window 'halo'");
    EXPECT_EQ(found[0].text, "98 % of its time in MPI_Win_fence waiting for rank 3");
    EXPECT_NE(found[0].remedy.find("rank 3"), std::string::npos);
    // Between nodes the process that waits least does.
    const Values far = {{index_of(Sync::Win_fence, kWaiting), kSecond}, {index_of(Other::Lifetime), kSecond}};
    const Values late = {{index_of(Sync::Win_fence, kWaiting), kSecond / 10}, {index_of(Other::Lifetime), kSecond}};
    EXPECT_NE(advice(window("halo", {far, late, far})).at(0).text.find("rank 1"), std::string::npos);
    EXPECT_NE(advice(window("halo", {far, far, far})).at(0).text.find("other processes"), std::string::npos);
}

TEST(Advice, MemoryThatIsNotShared) {
    const auto found = advice(window("m", {{{index_of(Kind::Put, DataPath::ProcessVm, 0), 640},
                                            {index_of(Kind::Put, DataPath::LoadStore, 0), 360}}}));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].text, "64 % of its operations were calls of the system, or messages to the target");
    EXPECT_NE(found[0].remedy.find("MPI_Win_allocate"), std::string::npos);
    EXPECT_NE(found[0].remedy.find("OSC_ADOPT=auto: then they are loads and stores"), std::string::npos);
    // 0.5 us each, of 8 bytes.
    const auto timed = advice(window("m", {{{index_of(Kind::Put, DataPath::Agent, 0), 1000000},
                                            {index_of(Kind::Put, DataPath::Agent, 0, kBytes), 8000000},
                                            {index_of(Kind::Put, DataPath::Agent, kOperationNs), kSecond / 2}}}));
    ASSERT_EQ(timed.size(), 1u);
    EXPECT_NE(timed[0].text.find("and took 500.0 ms"), std::string::npos);
    EXPECT_NE(timed[0].remedy.find("which take some 20.8 ms"), std::string::npos);
    EXPECT_TRUE(advice(window("m", {{{index_of(Kind::Put, DataPath::ProcessVm, 0), 50}}})).empty());
    EXPECT_TRUE(advice(window("m", {{{index_of(Kind::Put, DataPath::ProcessVm, 0), 500},
                                     {index_of(Kind::Put, DataPath::LoadStore, 0), 9500}}}))
                    .empty());
}

TEST(Advice, OneOperationForEachLockOrFlush) {
    const auto locks = [](std::uint64_t operations) {
        return advice(window("l", {{{index_of(Kind::Put, DataPath::LoadStore, 0), operations},
                                    {index_of(Sync::Win_lock, kCallsMade), 1000}}}));
    };
    ASSERT_EQ(locks(1000).size(), 1u);
    EXPECT_NE(locks(1000)[0].remedy.find("MPI_Win_lock_all once, and MPI_Win_flush"), std::string::npos);
    EXPECT_TRUE(locks(2000).empty());
    const auto flushes = [](DataPath path, std::uint64_t operations) {
        return advice(
            window("f", {{{index_of(Kind::Put, path, 0), operations}, {index_of(Sync::Win_flush, kCallsMade), 1000}}}));
    };
    EXPECT_EQ(flushes(DataPath::Message, 1000).size(), 1u);
    EXPECT_TRUE(flushes(DataPath::Message, 4000).empty());
    EXPECT_TRUE(flushes(DataPath::LoadStore, 1000).empty());
}

TEST(Advice, ContendedLocksAndTheHost) {
    const Values contended = {{index_of(Kind::Put, DataPath::LoadStore, 0), 5000},
                              {index_of(Sync::Win_lock, kCallsMade), 1000},
                              {index_of(Sync::Win_lock, kWaiting), kSecond / 2},
                              {index_of(Other::LockContended), 900},
                              {index_of(Other::Lifetime), kSecond}};
    ASSERT_EQ(advice(window("c", {contended})).size(), 1u);
    EXPECT_EQ(advice(window("c", {contended}))[0].text, "50 % of its time waiting for locks, 900 of them taken");
    WindowReport host = window("", {{{index_of(Kind::Put, DataPath::Host, 0), 3}}});
    host.id = kHostServed;
    EXPECT_EQ(advice(host).at(0).text, "3 operations went to the host MPI");
}

TEST(Advice, LateExposuresAndManyWindows) {
    const Values exposed = {{index_of(Sync::Win_start, kWaiting), kSecond / 5},
                            {index_of(Sync::Win_wait, kWaiting), kSecond / 5},
                            {index_of(Other::Lifetime), kSecond}};
    const std::string waits = "40 % of its time in MPI_Win_start, MPI_Win_complete and MPI_Win_wait waiting";
    EXPECT_EQ(advice(window("p", {exposed})).at(0).text, waits);
    Report report;
    report.windows.assign(99, window("w", {{}}));
    EXPECT_TRUE(advise(report).empty());
    report.windows.push_back(window("w", {{}}));
    EXPECT_EQ(advise(report).at(0).text, "100 windows or more were created");
}

TEST(Table, NamesWindowsAndAdvice) {
    Report report;
    report.processes = 3;
    report.reporting = 2;
    report.windows.push_back(window("halo", {{{index_of(Kind::Put, DataPath::ProcessVm, 1), 640}}}));
    finish(report);
    const std::vector<Finding> findings = advise(report);
    report.totals = {0, 12};
    const char* const names[] = {"nothing", "network.retries"};
    const std::string table = table_of(report, findings, names);
    EXPECT_NE(table.find("network.retries=12\n"), std::string::npos) << table;
    EXPECT_EQ(table.find("nothing"), std::string::npos) << table;
    EXPECT_NE(table.find("window 'halo', MPI_Win_create, 1 processes: 640 operations"), std::string::npos) << table;
    EXPECT_NE(table.find("statistics of 2 of them"), std::string::npos) << table;
    EXPECT_NE(table.find("advice: window 'halo': 100 %"), std::string::npos) << table;
    const std::string json = json_of(report, findings, {});
    EXPECT_NE(json.find("\"process_vm\""), std::string::npos);
}

}  // namespace

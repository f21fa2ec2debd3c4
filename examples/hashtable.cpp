// A distributed hash table: buckets and a heap of overflow cells in every rank's window. A rank inserts a key with one
// MPI_Compare_and_swap of the bucket; if another key is there it takes a cell of the owner's heap with
// MPI_Fetch_and_op, puts the key there, and links the cell into the bucket's chain with MPI_Compare_and_swap. The owner
// takes no part. Lookups follow the chains with MPI_Get. With --messages: keys and questions are sent to the owners,
// which work on their own tables.
#include "example.h"

using example::Bundles;
using example::mix;
using example::Options;
using example::Session;

namespace {

using Word = std::int64_t;
constexpr Word kEmpty = 0;     // no key, and no next cell
constexpr MPI_Aint kUsed = 0;  // where a rank counts the cells of its heap that are taken

struct Settings {
    long buckets = 12;
    long keys = 4000;
    long batch = 64;
    bool messages = false;
};

// A window: the count of cells in use, a word to spare, then cells of a key and the next cell's number. Cells from 1 on
// are the buckets, those behind are the heap.
struct Table {
    Word* words = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    Word buckets = 0;
    Word cells = 0;
    int ranks = 1;

    static MPI_Aint key_at(Word cell) { return 2 * cell; }
    static MPI_Aint next_at(Word cell) { return 2 * cell + 1; }
    int owner(Word key) const {
        return static_cast<int>((mix(static_cast<std::uint64_t>(key)) >> 32) % static_cast<std::uint64_t>(ranks));
    }
    Word bucket(Word key) const {
        return 1 + static_cast<Word>(mix(static_cast<std::uint64_t>(key)) % static_cast<std::uint64_t>(buckets));
    }
    Word& word(MPI_Aint at) const { return words[at]; }
};

// All keys differ and none is kEmpty; odd ones are inserted, even ones are never there.
Word key_of(int rank, long i) {
    return 2 * ((static_cast<Word>(rank) << 40) + i) + 1;
}

// ---- one-sided ------------------------------------------------------------------------------------------------------

struct Insertion {
    Word key;
    int owner;
    Word bucket;
    Word seen;
    Word cell;
    Word next;
};

Word swap(const Table& t, const Insertion& in, const Word& expected, const Word& value, MPI_Aint at) {
    Word before = 0;
    MPI_Compare_and_swap(&value, &expected, &before, MPI_INT64_T, in.owner, at, t.win);
    MPI_Win_flush(in.owner, t.win);
    return before;
}

// Links the cell, which has its key, in front of the bucket's chain: its own next must be right before others can see
// it.
void link(const Table& t, Insertion& in) {
    Word head = kEmpty;
    do {
        in.next = head;
        MPI_Put(&in.next, 1, MPI_INT64_T, in.owner, Table::next_at(in.cell), 1, MPI_INT64_T, t.win);
        MPI_Win_flush(in.owner, t.win);
        head = swap(t, in, in.next, in.cell, Table::next_at(in.bucket));
    } while (head != in.next);
}

// Several keys at once, so that their round trips overlap.
void insert(const Table& t, std::vector<Insertion>& batch) {
    const Word one = 1;
    for (Insertion& in : batch)
        MPI_Compare_and_swap(&in.key, &kEmpty, &in.seen, MPI_INT64_T, in.owner, Table::key_at(in.bucket), t.win);
    MPI_Win_flush_all(t.win);
    for (Insertion& in : batch) {
        if (in.seen != kEmpty) MPI_Fetch_and_op(&one, &in.cell, MPI_INT64_T, in.owner, kUsed, MPI_SUM, t.win);
    }
    MPI_Win_flush_all(t.win);
    for (Insertion& in : batch) {
        if (in.seen == kEmpty) continue;
        in.cell += 1 + t.buckets;
        if (in.cell >= t.cells) {
            std::fprintf(stderr, "hashtable: the heap of rank %d is full\n", in.owner);
            MPI_Abort(MPI_COMM_WORLD, example::kWrong);
        }
        MPI_Put(&in.key, 1, MPI_INT64_T, in.owner, Table::key_at(in.cell), 1, MPI_INT64_T, t.win);
    }
    MPI_Win_flush_all(t.win);
    for (Insertion& in : batch) {
        if (in.seen != kEmpty) link(t, in);
    }
}

void insert_all(const Session& session, const Settings& set, const Table& t) {
    example::Progress progress(session, "keys", set.keys);
    std::vector<Insertion> batch;
    MPI_Win_lock_all(0, t.win);
    for (long i = 0; i < set.keys; ++i) {
        const Word key = key_of(session.rank, i);
        batch.push_back({key, t.owner(key), t.bucket(key), kEmpty, 0, kEmpty});
        if (static_cast<long>(batch.size()) < set.batch && i < set.keys - 1) continue;
        insert(t, batch);
        batch.clear();
        progress.at(i);
    }
    MPI_Win_unlock_all(t.win);
}

// How many of the keys are there. All lookups of a batch go one cell along their chains at a time.
long find(const Table& t, const std::vector<Word>& keys) {
    struct Lookup {
        Word key;
        Word cell;
        Word read[2];
    };
    std::vector<Lookup> open;
    for (const Word key : keys)
        open.push_back({key, t.bucket(key), {kEmpty, kEmpty}});
    long found = 0;
    while (!open.empty()) {
        for (Lookup& l : open)
            MPI_Get(l.read, 2, MPI_INT64_T, t.owner(l.key), Table::key_at(l.cell), 2, MPI_INT64_T, t.win);
        MPI_Win_flush_all(t.win);
        std::vector<Lookup> rest;
        for (Lookup& l : open) {
            if (l.read[0] == l.key) {
                ++found;
            } else if (l.read[1] != kEmpty) {
                rest.push_back({l.key, l.read[1], {kEmpty, kEmpty}});
            }
        }
        open.swap(rest);
    }
    return found;
}

// ---- message passing ------------------------------------------------------------------------------------------------

void insert_here(const Table& t, Word key) {
    const Word bucket = t.bucket(key);
    if (t.word(Table::key_at(bucket)) == kEmpty) {
        t.word(Table::key_at(bucket)) = key;
        return;
    }
    const Word cell = 1 + t.buckets + t.word(kUsed)++;
    if (cell >= t.cells) {
        std::fprintf(stderr, "hashtable: a heap is full\n");
        MPI_Abort(MPI_COMM_WORLD, example::kWrong);
    }
    t.word(Table::key_at(cell)) = key;
    t.word(Table::next_at(cell)) = t.word(Table::next_at(bucket));
    t.word(Table::next_at(bucket)) = cell;
}

bool is_here(const Table& t, Word key) {
    for (Word cell = t.bucket(key); cell != kEmpty; cell = t.word(Table::next_at(cell))) {
        if (t.word(Table::key_at(cell)) == key) return true;
    }
    return false;
}

void insert_by_messages(const Session& session, const Settings& set, const Table& t) {
    Bundles<Word> bundles(session.ranks);
    for (long i = 0; i < set.keys; ++i) {
        const Word key = key_of(session.rank, i);
        bundles.add(t.owner(key), key);
        if (bundles.size() < set.batch && i < set.keys - 1) continue;
        for (const Word arrived : bundles.exchange())
            insert_here(t, arrived);
    }
}

// All ranks' counts together: a question's answer is counted where it is given.
long find_by_messages(const Session& session, const Table& t, const std::vector<Word>& keys) {
    Bundles<Word> bundles(session.ranks);
    for (const Word key : keys)
        bundles.add(t.owner(key), key);
    long found = 0;
    for (const Word asked : bundles.exchange())
        found += is_here(t, asked) ? 1 : 0;
    return found;
}

// ---- the check ------------------------------------------------------------------------------------------------------

struct Found {
    long present = 0;
    long absent = 0;
};

// Every rank looks up its successor's keys, which are there, and as many that nobody has inserted.
Found look_up(const Session& session, const Settings& set, const Table& t) {
    Found found;
    if (!set.messages) MPI_Win_lock_all(0, t.win);
    for (long i = 0; i < set.keys; i += set.batch) {
        std::vector<Word> there;
        std::vector<Word> not_there;
        for (long k = i; k < std::min(set.keys, i + set.batch); ++k) {
            there.push_back(key_of((session.rank + 1) % session.ranks, k));
            not_there.push_back(there.back() + 1);
        }
        found.present += set.messages ? find_by_messages(session, t, there) : find(t, there);
        found.absent += set.messages ? find_by_messages(session, t, not_there) : find(t, not_there);
    }
    if (!set.messages) MPI_Win_unlock_all(t.win);
    return {session.sum(static_cast<std::int64_t>(found.present)),
            session.sum(static_cast<std::int64_t>(found.absent))};
}

// Adds the hashes of all keys in this rank's table, and counts them.
std::uint64_t contents(const Session& session, const Table& t, std::int64_t& count) {
    const example::OwnMemory own(session, t.win);
    std::uint64_t sum = 0;
    for (Word cell = 1; cell < t.cells; ++cell) {
        const Word key = t.word(Table::key_at(cell));
        if (key == kEmpty) continue;
        sum += mix(static_cast<std::uint64_t>(key));
        ++count;
    }
    return sum;
}

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    Options options("a distributed hash table with chains of overflow cells");
    options.number("buckets", set.buckets, 0, 30, "log2 of the buckets per rank");
    options.number("keys", set.keys, 1, 1L << 32, "keys that each rank inserts");
    options.number("batch", set.batch, 1, 1L << 24, "keys under way per rank");
    options.flag("messages", set.messages, "the message-passing twin");
    const int status = options.parse(argc, argv, session);
    if (status != Options::kGoOn) return status;

    Table table;
    table.ranks = session.ranks;
    table.buckets = Word{1} << set.buckets;
    table.cells = 1 + table.buckets + 2 * set.keys + 1000;
    MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(Word)) * 2 * table.cells, sizeof(Word), MPI_INFO_NULL, MPI_COMM_WORLD,
                     static_cast<void*>(&table.words), &table.win);
    {
        const example::OwnMemory own(session, table.win);
        std::fill(table.words, table.words + 2 * table.cells, kEmpty);
    }
    const double begin = Session::start_together();
    (set.messages ? insert_by_messages : insert_all)(session, set, table);
    const double middle = Session::start_together();
    const Found found = look_up(session, set, table);
    const double end = Session::start_together();

    std::int64_t count = 0;
    std::uint64_t off = contents(session, table, count);
    for (long i = 0; i < set.keys; ++i)
        off -= mix(static_cast<std::uint64_t>(key_of(session.rank, i)));
    MPI_Allreduce(MPI_IN_PLACE, &off, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    const std::int64_t all = static_cast<std::int64_t>(set.keys) * session.ranks;
    const bool right = session.all(session.sum(count) == all && off == 0 && found.present == all && found.absent == 0);
    if (session.first()) {
        std::printf("hashtable ranks=%d mode=%s keys=%lld insert_seconds=%.4f lookup_seconds=%.4f verified=%s\n",
                    session.ranks, set.messages ? "messages" : "compare_and_swap", static_cast<long long>(all),
                    middle - begin, end - middle, example::yes(right));
    }
    MPI_Win_free(&table.win);
    return right ? example::kRight : example::kWrong;
}

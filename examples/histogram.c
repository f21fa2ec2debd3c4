// A distributed histogram, an ordinary MPI one-sided program: every rank reads its part of a text with Zipf-distributed
// words, counts each word in a table that is spread over all ranks' windows, and registers the first text position of
// each word. The result is compared with a sequential count and printed as a checksum.
//   histogram [WORDS]     the histogram: Fetch_and_op, Compare_and_swap, Accumulate, Put and Get; lock_all and fence
//   histogram --busy      rank 1 computes 200 ms without MPI while rank 0 does fetch_and_ops to it
// Output is "key=value" words on one line, for people and for demo.sh.
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kVocabulary = 4096, kBatch = 256 };
static const int64_t kNowhere = -1;

// ---- the text: word i is a pure function of i, so that any rank can read any part of it ----------------------------

static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static double cumulative[kVocabulary];

// Word r is used in proportion to 1 / (r + 1), as in natural language.
static void prepare_text(void) {
    double sum = 0;
    for (int r = 0; r < kVocabulary; ++r) {
        sum += 1.0 / (r + 1);
        cumulative[r] = sum;
    }
    for (int r = 0; r < kVocabulary; ++r)
        cumulative[r] /= sum;
}

static int word_at(int64_t position) {
    const double x = (double)(mix((uint64_t)position) >> 11) / 9007199254740992.0;
    int low = 0;
    int high = kVocabulary - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (cumulative[middle] > x) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

// ---- the table: word w lives on rank w % ranks, as a count and a first position -------------------------------------

typedef struct {
    MPI_Win win;
    int64_t* memory;
    int rank;
    int ranks;
    int per_rank;
} table_t;

static int owner(const table_t* t, int word) {
    return word % t->ranks;
}
static MPI_Aint count_of(const table_t* t, int word) {
    return word / t->ranks;
}
static MPI_Aint first_of(const table_t* t, int word) {
    return t->per_rank + word / t->ranks;
}

static void make_table(table_t* t) {
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->ranks);
    // An even number of words per rank keeps every rank's part a multiple of 16 bytes long.
    t->per_rank = (kVocabulary + t->ranks - 1) / t->ranks;
    t->per_rank += t->per_rank % 2;
    const MPI_Aint bytes = (MPI_Aint)sizeof(int64_t) * 2 * t->per_rank;
    MPI_Win_allocate(bytes, (int)sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &t->memory, &t->win);
    MPI_Win_fence(0, t->win);
    // Every owner clears its counts itself; first positions are put there by the next rank.
    memset(t->memory, 0, sizeof(int64_t) * (size_t)t->per_rank);
    int64_t* nowhere = malloc(sizeof(int64_t) * (size_t)t->per_rank);
    for (int i = 0; i < t->per_rank; ++i)
        nowhere[i] = kNowhere;
    MPI_Put(nowhere, t->per_rank, MPI_INT64_T, (t->rank + 1) % t->ranks, t->per_rank, t->per_rank, MPI_INT64_T, t->win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, t->win);
    free(nowhere);
}

// Lowers the first position of a word to `position`, unless it is lower already.
static void register_first(const table_t* t, int word, int64_t position) {
    int64_t known = kNowhere;
    while (known == kNowhere || position < known) {
        int64_t seen = 0;
        MPI_Compare_and_swap(&position, &known, &seen, MPI_INT64_T, owner(t, word), first_of(t, word), t->win);
        MPI_Win_flush(owner(t, word), t->win);
        if (seen == known) return;
        known = seen;
    }
}

// Counts the words of this rank's part. The frequent ones are collected and added by Accumulate in batches; each of
// the others is one Fetch_and_op, whose result shows whether the word is new to the table.
static void count_words(const table_t* t, int64_t words) {
    enum { kFrequent = 16 };
    int64_t collected[kFrequent] = {0};
    const int64_t begin = words * t->rank / t->ranks;
    const int64_t end = words * (t->rank + 1) / t->ranks;
    char* met = calloc(kVocabulary, 1);
    const int64_t one = 1;
    MPI_Win_lock_all(0, t->win);
    for (int64_t i = begin; i < end; ++i) {
        const int word = word_at(i);
        if (!met[word]) {
            met[word] = 1;
            register_first(t, word, i);
        }
        if (word < kFrequent) {
            ++collected[word];
        } else {
            int64_t before = 0;
            MPI_Fetch_and_op(&one, &before, MPI_INT64_T, owner(t, word), count_of(t, word), MPI_SUM, t->win);
            MPI_Win_flush(owner(t, word), t->win);
        }
        if ((i - begin) % kBatch == kBatch - 1 || i == end - 1) {
            for (int w = 0; w < kFrequent; ++w) {
                MPI_Accumulate(&collected[w], 1, MPI_INT64_T, owner(t, w), count_of(t, w), 1, MPI_INT64_T, MPI_SUM,
                               t->win);
            }
            MPI_Win_flush_all(t->win);
            memset(collected, 0, sizeof collected);
        }
    }
    MPI_Win_unlock_all(t->win);
    free(met);
}

// ---- the answer, read back by rank 0 and computed again without any communication ----------------------------------

static uint64_t checksum(const int64_t* counts, const int64_t* firsts) {
    uint64_t sum = 0;
    for (int w = 0; w < kVocabulary; ++w)
        sum = mix(sum ^ mix((uint64_t)counts[w]) ^ (uint64_t)firsts[w]);
    return sum;
}

static uint64_t distributed_answer(const table_t* t) {
    int64_t* part = malloc(sizeof(int64_t) * 2 * (size_t)t->per_rank);
    static int64_t counts[kVocabulary];
    static int64_t firsts[kVocabulary];
    for (int r = 0; r < t->ranks; ++r) {
        MPI_Win_lock(MPI_LOCK_SHARED, r, 0, t->win);
        MPI_Get(part, 2 * t->per_rank, MPI_INT64_T, r, 0, 2 * t->per_rank, MPI_INT64_T, t->win);
        MPI_Win_unlock(r, t->win);
        for (int w = r; w < kVocabulary; w += t->ranks) {
            counts[w] = part[w / t->ranks];
            firsts[w] = part[t->per_rank + w / t->ranks];
        }
    }
    free(part);
    return checksum(counts, firsts);
}

static uint64_t sequential_answer(int64_t words) {
    static int64_t counts[kVocabulary];
    static int64_t firsts[kVocabulary];
    for (int w = 0; w < kVocabulary; ++w)
        firsts[w] = kNowhere;
    for (int64_t i = 0; i < words; ++i) {
        const int word = word_at(i);
        if (counts[word]++ == 0) firsts[word] = i;
    }
    return checksum(counts, firsts);
}

static int histogram(table_t* t, int64_t words) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    count_words(t, words);
    MPI_Barrier(MPI_COMM_WORLD);
    const double took = MPI_Wtime() - begin;
    int right = 1;
    if (t->rank == 0) {
        const uint64_t found = distributed_answer(t);
        right = found == sequential_answer(words);
        printf("words=%" PRId64 " ranks=%d checksum=%016" PRIx64 " verified=%s ms=%.1f\n", words, t->ranks, found,
               right ? "yes" : "NO", took * 1e3);
    }
    MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return right ? 0 : 1;
}

// ---- a target that computes -----------------------------------------------------------------------------------------

static int busy_target(table_t* t) {
    enum { kOperations = 20 };
    const double compute = 0.2;
    const double apart = 0.005;
    int right = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (t->rank == 0) {
        double total = 0;
        double worst = 0;
        const int64_t one = 1;
        MPI_Win_lock_all(0, t->win);
        for (int i = 0; i < kOperations; ++i) {
            const double wait_until = MPI_Wtime() + apart;
            while (MPI_Wtime() < wait_until) {
            }
            int64_t before = 0;
            const double begin = MPI_Wtime();
            MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 1, 0, MPI_SUM, t->win);
            MPI_Win_flush(1, t->win);
            const double took = MPI_Wtime() - begin;
            total += took;
            if (took > worst) worst = took;
            right = right && before == i;
        }
        MPI_Win_unlock_all(t->win);
        printf("operations=%d mean_us=%.1f worst_us=%.1f verified=%s\n", kOperations, total / kOperations * 1e6,
               worst * 1e6, right ? "yes" : "NO");
    } else if (t->rank == 1) {
        const double end = MPI_Wtime() + compute;
        volatile double work = 1;
        while (MPI_Wtime() < end)
            work = work * 1.000001 + 1e-9;
    }
    MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return right ? 0 : 1;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int busy = argc > 1 && strcmp(argv[1], "--busy") == 0;
    const int64_t words = argc > 1 && !busy ? strtoll(argv[1], NULL, 10) : 200000;
    table_t table;
    prepare_text();
    make_table(&table);
    int status = 1;
    if (words <= 0 || (busy && table.ranks < 2)) {
        if (table.rank == 0) fprintf(stderr, "usage: histogram [WORDS] | --busy (with at least 2 ranks)\n");
    } else {
        status = busy ? busy_target(&table) : histogram(&table, words);
    }
    MPI_Win_free(&table.win);
    MPI_Finalize();
    return status;
}

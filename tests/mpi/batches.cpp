// Batches of small updates (docs/STRATEGIES.md#batches). In a long run of updates without a synchronisation call some
// are delayed, and each call that must perform them does so: the first cases look into the memory of the process's own
// window, which no other process updates. The last case compares generated calls with a model in the order of the
// calls.
#include "batches.h"

#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Accumulate", "MPI_Compare_and_swap", "MPI_Fetch_and_op", "MPI_Get_accumulate",
             "MPI_Put", "MPI_Get", "MPI_Rput", "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate", "MPI_Win_lock_all",
             "MPI_Win_unlock_all", "MPI_Win_flush", "MPI_Win_flush_all", "MPI_Win_flush_local",
             "MPI_Win_flush_local_all", "MPI_Win_sync", "MPI_Win_fence", "MPI_Win_post", "MPI_Win_start",
             "MPI_Win_complete", "MPI_Win_wait", "MPI_Win_test", "MPI_Win_shared_query")

using osct::begin_run;
using osct::byte_of;
using osct::kRun;
using osct::kWords;
using osct::look;

namespace {

using Ends = std::function<void(const Window&)>;

void ends_run(const Ends& call) {
    Window window(WindowKind::Allocate, kWords * sizeof(std::int64_t));
    CHECK_OK(MPI_Win_lock_all(0, window));
    // Once from the start of an epoch, and once behind a long run.
    for (const std::int64_t total : {kRun, 2 * kRun}) {
        begin_run(window);
        call(window);
        CHECK_EQ(look(window, 0), total);
    }
    CHECK_OK(MPI_Win_unlock_all(window));
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE(synchronisation_performs_a_batch) {
    ends_run([](const Window& w) { CHECK_OK(MPI_Win_flush(rank(), w.handle())); });
    ends_run([](const Window& w) { CHECK_OK(MPI_Win_flush((rank() + 1) % size(), w.handle())); });
    ends_run([](const Window& w) { CHECK_OK(MPI_Win_flush_all(w.handle())); });
    ends_run([](const Window& w) { CHECK_OK(MPI_Win_flush_local(rank(), w.handle())); });
    ends_run([](const Window& w) { CHECK_OK(MPI_Win_flush_local_all(w.handle())); });
    ends_run([](const Window& w) { CHECK_OK(MPI_Win_sync(w.handle())); });
    ends_run([](const Window& w) {
        CHECK_OK(MPI_Win_unlock_all(w.handle()));
        CHECK_EQ(look(w, 0) % kRun, 0);
        CHECK_OK(MPI_Win_lock_all(0, w.handle()));
    });
}

CASE(the_end_of_an_active_epoch_performs_a_batch) {
    Window window(WindowKind::Allocate, kWords * sizeof(std::int64_t));
    MPI_Win win = window;
    CHECK_OK(MPI_Win_fence(0, win));
    begin_run(window);
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_EQ(look(window, 0), kRun);
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));

    const osct::Group self(rank());
    for (const bool tests : {false, true}) {
        const std::int64_t before = look(window, 0);
        CHECK_OK(MPI_Win_post(self, 0, win));
        CHECK_OK(MPI_Win_start(self, 0, win));
        begin_run(window);
        if (tests) {
            int done = 1;
            CHECK_OK(MPI_Win_test(win, &done));
            CHECK_EQ(done, 0);
            CHECK_EQ(look(window, 0), before + kRun);
        }
        CHECK_OK(MPI_Win_complete(win));
        CHECK_EQ(look(window, 0), before + kRun);
        CHECK_OK(MPI_Win_wait(win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Accumulates of one origin to one location keep their order (MPI 4.1 section 12.7.2).
CASE(other_operations_on_the_target_come_behind_a_batch) {
    static const std::int64_t operand = 5;
    static std::int64_t result;
    const auto expect_total = [](const Window& w) {
        CHECK_OK(MPI_Win_flush(rank(), w.handle()));
        CHECK_EQ(result % kRun, 0);
        CHECK(result > 0);
    };
    ends_run([&](const Window& w) {
        CHECK_OK(MPI_Fetch_and_op(&operand, &result, MPI_INT64_T, rank(), 0, MPI_NO_OP, w.handle()));
        expect_total(w);
    });
    ends_run([&](const Window& w) {
        CHECK_OK(MPI_Compare_and_swap(&operand, &operand, &result, MPI_INT64_T, rank(), 0, w.handle()));
        expect_total(w);
    });
    ends_run([&](const Window& w) {
        CHECK_OK(MPI_Get_accumulate(&operand, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T,
                                    MPI_NO_OP, w.handle()));
        expect_total(w);
    });
    ends_run([&](const Window& w) {
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_OK(MPI_Rget_accumulate(&operand, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T,
                                     MPI_NO_OP, w.handle(), &request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        expect_total(w);
    });
    // Of two elements, which are not batched: the second one is replaced.
    const std::int64_t pair[] = {0, 9};
    const auto check_pair = [](const Window& w) {
        CHECK_OK(MPI_Win_flush(rank(), w.handle()));
        CHECK_EQ(look(w, 0) % kRun, 0);
    };
    ends_run([&](const Window& w) {
        CHECK_OK(MPI_Accumulate(pair, 2, MPI_INT64_T, rank(), 0, 2, MPI_INT64_T, MPI_SUM, w.handle()));
        check_pair(w);
    });
    ends_run([&](const Window& w) {
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_OK(MPI_Raccumulate(pair, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T, MPI_SUM, w.handle(), &request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check_pair(w);
    });
    // Not ordered by the standard; libosc performs the batch before them all the same.
    ends_run([&](const Window& w) {
        CHECK_OK(MPI_Put(&operand, 1, MPI_INT64_T, rank(), byte_of(8), 1, MPI_INT64_T, w.handle()));
    });
    ends_run([&](const Window& w) {
        CHECK_OK(MPI_Get(&result, 1, MPI_INT64_T, rank(), byte_of(8), 1, MPI_INT64_T, w.handle()));
    });
    ends_run([&](const Window& w) {
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_OK(MPI_Rput(&operand, 1, MPI_INT64_T, rank(), byte_of(8), 1, MPI_INT64_T, w.handle(), &request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    });
    ends_run([&](const Window& w) {
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_OK(MPI_Rget(&result, 1, MPI_INT64_T, rank(), byte_of(8), 1, MPI_INT64_T, w.handle(), &request));
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    });
}

// A wrong argument in the middle of a run is an error of its own call.
CASE(errors_in_a_run) {
    Returning win(WindowKind::Allocate, kWords * sizeof(std::int64_t));
    const std::int64_t one = 1;
    CHECK_OK(MPI_Win_lock_all(0, win));
    begin_run(win);
    CHECK_CLASS(MPI_Accumulate(&one, 1, MPI_INT64_T, rank(), byte_of(2 * kWords), 1, MPI_INT64_T, MPI_SUM, win),
                MPI_ERR_RMA_RANGE);
    CHECK_CLASS(MPI_Accumulate(&one, 1, MPI_INT64_T, size(), 0, 1, MPI_INT64_T, MPI_SUM, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Accumulate(&one, 1, MPI_DOUBLE, rank(), 0, 1, MPI_DOUBLE, MPI_BXOR, win), MPI_ERR_OP);
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_EQ(look(win, 0), kRun);
    // No epoch is open any more.
    CHECK_CLASS(MPI_Accumulate(&one, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T, MPI_SUM, win), MPI_ERR_RMA_SYNC);
    CHECK_EQ(look(win, 0), kRun);
    MPI_Barrier(MPI_COMM_WORLD);
}

// ---- generated calls ------------------------------------------------------------------------------------------------

struct Answer {
    std::int64_t got = 0;
    std::int64_t wanted = 0;
};

// One rank's calls to words that only it uses, and what each word must be after them.
class Story {
  public:
    Story(const Window& window, int target, unsigned seed) : window_(window), target_(target), random_(seed) {
        answers_.reserve(kMostAnswers);
    }

    void go(int calls) {
        for (int i = 0; i < calls; ++i) {
            step();
            if (answers_.size() == kMostAnswers) flush();
        }
        flush();
    }
    const std::vector<std::int64_t>& model() const { return model_; }

  private:
    static constexpr std::size_t kMostAnswers = 64;
    static constexpr std::size_t kFirstPut = 100;
    static constexpr std::size_t kMostPuts = 800;

    std::int64_t upto(std::int64_t last) {
        return static_cast<std::int64_t>(random_() % static_cast<unsigned>(last + 1));
    }

    // Long runs of updates, and short ones with other calls between them.
    void step() {
        if (left_ == 0) {
            left_ = upto(1) == 0 ? upto(300) : upto(20);
            other();
        }
        if (left_ == 0) return;
        --left_;
        const std::size_t at = static_cast<std::size_t>(upto(2)) * 1024 + static_cast<std::size_t>(upto(5));
        std::int64_t& word = model_[at];
        const std::int64_t operand = upto(1000);
        if (upto(3) == 0) return request(operand);
        if (upto(3) == 0) {
            const std::int64_t compare = upto(1) == 0 ? word : operand + 1;
            CHECK_OK(MPI_Compare_and_swap(&operand, &compare, expect(word), MPI_INT64_T, target_, byte_of(at),
                                          window_.handle()));
            if (word == compare) word = operand;
            return;
        }
        static const MPI_Op kOps[] = {MPI_SUM, MPI_SUM, MPI_BXOR, MPI_MAX, MPI_REPLACE};
        const MPI_Op op = kOps[upto(4)];
        CHECK_OK(MPI_Accumulate(&operand, 1, MPI_INT64_T, target_, byte_of(at), 1, MPI_INT64_T, op, window_.handle()));
        word = op == MPI_SUM    ? word + operand
               : op == MPI_BXOR ? word ^ operand
               : op == MPI_MAX  ? std::max(word, operand)
                                : operand;
    }

    // A put, to a word of its own since the last flush, or an update.
    void request(std::int64_t operand) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (upto(1) == 0) {
            if (puts_ == kMostPuts) flush_all();
            const std::size_t at = kFirstPut + puts_++;
            CHECK_OK(
                MPI_Rput(&operand, 1, MPI_INT64_T, target_, byte_of(at), 1, MPI_INT64_T, window_.handle(), &request));
            model_[at] = operand;
        } else {
            CHECK_OK(MPI_Raccumulate(&operand, 1, MPI_INT64_T, target_, byte_of(5), 1, MPI_INT64_T, MPI_SUM,
                                     window_.handle(), &request));
            model_[5] += operand;
        }
        CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }

    void flush_all() {
        CHECK_OK(MPI_Win_flush_all(window_.handle()));
        puts_ = 0;
    }

    void other() {
        const std::size_t at = static_cast<std::size_t>(upto(2)) * 1024 + static_cast<std::size_t>(upto(4));
        const std::int64_t operands[] = {upto(1000), upto(1000)};
        switch (upto(3)) {
            case 0:
                flush();
                break;
            case 1:
                CHECK_OK(MPI_Fetch_and_op(operands, expect(model_[at]), MPI_INT64_T, target_, byte_of(at), MPI_SUM,
                                          window_.handle()));
                model_[at] += operands[0];
                break;
            case 2:
                CHECK_OK(MPI_Accumulate(operands, 2, MPI_INT64_T, target_, byte_of(at), 2, MPI_INT64_T, MPI_SUM,
                                        window_.handle()));
                model_[at] += operands[0];
                model_[at + 1] += operands[1];
                break;
            default:
                CHECK_OK(MPI_Get_accumulate(operands, 1, MPI_INT64_T, expect(model_[at]), 1, MPI_INT64_T, target_,
                                            byte_of(at), 1, MPI_INT64_T, MPI_REPLACE, window_.handle()));
                model_[at] = operands[0];
                break;
        }
    }

    // Where a call stores its result, which is known after a flush.
    std::int64_t* expect(std::int64_t wanted) {
        if (answers_.size() == kMostAnswers) flush();
        answers_.push_back({-1, wanted});
        return &answers_.back().got;
    }

    void flush() {
        MPI_Win win = window_.handle();
        switch (upto(3)) {
            case 0:
                flush_all();
                break;
            case 1:
                CHECK_OK(MPI_Win_flush_local(target_, win));
                break;
            case 2:
                CHECK_OK(MPI_Win_flush_local_all(win));
                break;
            default:
                CHECK_OK(MPI_Win_flush(target_, win));
                break;
        }
        for (const Answer& answer : answers_)
            CHECK_EQ(answer.got, answer.wanted);
        answers_.clear();
    }

    const Window& window_;
    const int target_;
    std::mt19937 random_;
    std::vector<std::int64_t> model_ = std::vector<std::int64_t>(kWords);
    std::vector<Answer> answers_;
    std::int64_t left_ = 0;
    std::size_t puts_ = 0;  // since the last flush of all targets
};

// One rank after the other calls f, and the others wait in the host.
template <class F>
void in_turns(F&& f) {
    for (int turn = 0; turn < size(); ++turn) {
        if (turn == rank()) f();
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

CASE(generated_calls_agree_with_a_model) {
    const int target = (rank() + 1) % size();
    const int calls = osct::full() ? 200000 : 20000;
    for (unsigned seed = 0; seed < 6; ++seed) {
        // Memory that is mapped here, and memory that only its owner has mapped, of targets that call and that wait.
        const WindowKind kind = seed % 2 == 0 ? WindowKind::Allocate : WindowKind::Create;
        Window window(kind, kWords * sizeof(std::int64_t));
        Story story(window, target, 100 * seed + static_cast<unsigned>(rank()));
        for (int epoch = 0; epoch < 4; ++epoch) {
            CHECK_OK(MPI_Win_lock_all(0, window));
            if (seed < 4)
                story.go(calls / 16);
            else
                in_turns([&] { story.go(calls / 16); });
            CHECK_OK(MPI_Win_unlock_all(window));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_lock_all(0, window));
        std::vector<std::int64_t> found(kWords);
        CHECK_OK(MPI_Get(found.data(), kWords, MPI_INT64_T, target, 0, kWords, MPI_INT64_T, window));
        CHECK_OK(MPI_Win_unlock_all(window));
        CHECK_ALL(found.data(), kWords, [&](std::size_t i) { return story.model()[i]; });
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

}  // namespace

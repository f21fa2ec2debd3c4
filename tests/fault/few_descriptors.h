// Takes the descriptors of a process away.
#pragma once

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace osct {

/// Leaves this process `count` descriptors while the object lives.
class FewDescriptors {
  public:
    explicit FewDescriptors(int count) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit low{200, before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &low);
        for (int one = 0; (one = ::eventfd(0, EFD_CLOEXEC)) >= 0;)
            taken_.push_back(one);
        for (int i = 0; i < count && !taken_.empty(); ++i) {
            ::close(taken_.back());
            taken_.pop_back();
        }
    }
    ~FewDescriptors() {
        for (const int one : taken_)
            ::close(one);
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;

  private:
    rlimit before_{};
    std::vector<int> taken_;
};

}  // namespace osct

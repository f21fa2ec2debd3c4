// A reference to a callable, for a function that calls it before it returns: a parameter that is no template.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace osc::base {

template <class Signature>
class FunctionRef;

/// The callable must outlive the reference.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
  public:
    template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
        FunctionRef(F&& callable)  // NOLINT(bugprone-forwarding-reference-overload): by `requires`
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
          call_([](void* object, Args... args) -> R {
              return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
          }) {}

    R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

  private:
    void* object_;
    R (*call_)(void*, Args...);
};

}  // namespace osc::base

// What the fuzzer does with one input: derived datatypes of any constructors over each other, whose flattened layouts
// must name the bytes that the host's MPI_Pack takes.
#pragma once

#include "../mpi/datatype_compare.h"
#include "../mpi/datatype_random.h"
#include "bytes.h"
#include "host/real.h"

namespace osc::test {

class DatatypesInput {
  public:
    DatatypesInput() {
        static const bool ready = start();
        if (!ready) wrong_ = "the host does not start";
    }

    /// Null, or what went wrong.
    const char* run(const std::uint8_t* data, std::size_t size) {
        Bytes bytes(data, size);
        osct::Random random([&](int low, int high) { return bytes(low, high); });
        std::vector<MPI_Datatype> parts{osct::leaf(random), osct::leaf(random)};
        std::vector<MPI_Datatype> owned;
        for (int level = random(1, 5); level > 0; --level) {
            const int which = random(0, osct::kConstructors - 1);
            const MPI_Datatype other = parts[static_cast<std::size_t>(random(0, static_cast<int>(parts.size()) - 1))];
            MPI_Datatype type = osct::construct(random, which, parts.back(), other);
            if (type == MPI_DATATYPE_NULL) break;  // the host refuses the arguments
            // MPICH 4.0.2's MPI_Pack divides by zero for some types over a part without data, and steps the wrong way
            // in several elements of a contiguous type over a part of negative extent.
            MPI_Count data = 0;
            MPI_Count lb = 0;
            MPI_Count extent = 0;
            MPI_Type_size_x(type, &data);
            MPI_Type_get_extent_x(type, &lb, &extent);
            if (data > 0 && data < kLargePart && extent >= 0) parts.push_back(type);
            if (which >= osct::kKinds) continue;
            owned.push_back(type);
            if (level > 1 && random(0, 1) == 0) continue;
            MPI_Type_commit(&type);
            const host::TypeInfo* const info = host::type_info(type);
            const char* const wrong =
                info != nullptr ? osct::compare(type, *info, random(1, 3), compared_) : "not flattened";
            if (wrong_ == nullptr) wrong_ = wrong;
        }
        for (MPI_Datatype& type : owned)
            MPI_Type_free(&type);
        return wrong_;
    }

  private:
    // A type over a larger part takes gigabytes where it is flattened.
    static constexpr MPI_Count kLargePart = 1 << 16;

    static bool start() {
        if (host::find_host() != host::Host::Ours) return false;
        int level = MPI_THREAD_SINGLE;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &level);
        MPI_Comm self = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_SELF, &self);
        MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        return host::init_types(self) == MPI_SUCCESS;
    }

    osct::Compared compared_;
    const char* wrong_ = nullptr;
};

}  // namespace osc::test

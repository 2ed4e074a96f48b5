#include "tests/engine/cuda/wrapped_libraries.h"

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

namespace kiln::testing {
namespace {

using cuda::CublasLtApi;
using cuda::CudnnApi;
using cuda::DriverApi;

WrappedLibraries*& current() {
  static WrappedLibraries* libraries = nullptr;
  return libraries;
}

// Whether the member is one of the others.
template <auto Member, auto... Others>
constexpr bool kIsOneOf = [] {
  const auto same = [](auto a, auto b) {
    if constexpr (std::is_same_v<decltype(a), decltype(b)>) {
      return a == b;
    } else {
      return false;
    }
  };
  return (same(Member, Others) || ...);
}();

template <auto Member>
constexpr bool kMakes =
    kIsOneOf<Member, &DriverApi::primary_ctx_retain, &DriverApi::mem_alloc,
             &DriverApi::mem_host_alloc, &DriverApi::module_load_data, &DriverApi::stream_create,
             &DriverApi::event_create, &DriverApi::stream_end_capture,
             &DriverApi::graph_instantiate, &CublasLtApi::create, &CudnnApi::create,
             &CudnnApi::create_descriptor>;
template <auto Member>
constexpr bool kGivesBack =
    kIsOneOf<Member, &DriverApi::primary_ctx_release, &DriverApi::mem_free,
             &DriverApi::mem_free_host, &DriverApi::module_unload, &DriverApi::stream_destroy,
             &DriverApi::event_destroy, &DriverApi::graph_destroy, &DriverApi::graph_exec_destroy,
             &CublasLtApi::destroy, &CudnnApi::destroy, &CudnnApi::destroy_descriptor>;
// A failure is of no consequence to the caller.
template <auto Member>
constexpr bool kMustWork =
    kIsOneOf<Member, &DriverApi::ctx_push_current, &DriverApi::ctx_pop_current,
             &DriverApi::get_error_name, &DriverApi::get_error_string, &DriverApi::mem_get_info,
             &DriverApi::pointer_get_attribute, &DriverApi::graph_node_get_type>;
// Never called while a stream is under capture, when the driver may refuse to be asked.
template <auto Member>
constexpr bool kIsBooked =
    kIsOneOf<Member, &DriverApi::mem_alloc, &DriverApi::module_load_data,
             &DriverApi::module_get_function, &DriverApi::stream_create, &DriverApi::event_create,
             &DriverApi::stream_end_capture, &DriverApi::graph_instantiate,
             &DriverApi::graph_upload, &DriverApi::graph_launch, &DriverApi::stream_synchronize,
             &CublasLtApi::create, &CublasLtApi::algo_check, &CudnnApi::create,
             &CudnnApi::get_attribute>;

// Whether a failure of this call costs time alone.
template <auto Member, class... Arguments>
bool is_preference(Arguments... arguments) {
  if constexpr (kIsOneOf<Member, &DriverApi::func_set_attribute>) {
    return std::get<1>(std::tuple(arguments...)) ==
           CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  }
  return false;
}

template <class Status>
constexpr bool kIsStatus = false;
template <>
constexpr bool kIsStatus<CUresult> = true;
template <>
constexpr bool kIsStatus<cublasStatus_t> = true;
template <>
constexpr bool kIsStatus<cudnnStatus_t> = true;

template <class Status>
Status status_of(WrappedLibraries::Failure failure) {
  const bool memory = failure == WrappedLibraries::Failure::kOutOfMemory;
  if constexpr (std::is_same_v<Status, CUresult>) {
    return memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_LAUNCH_FAILED;
  } else if constexpr (std::is_same_v<Status, cublasStatus_t>) {
    return memory ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_EXECUTION_FAILED;
  } else {
    return memory ? CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                  : CUDNN_STATUS_EXECUTION_FAILED;
  }
}

// The table that calls go on to.
template <class Table>
const Table& real_table(const cuda::Libraries& libraries) {
  if constexpr (std::is_same_v<Table, DriverApi>) {
    return **libraries.driver();
  } else if constexpr (std::is_same_v<Table, CublasLtApi>) {
    return **libraries.cublaslt();
  } else {
    return **libraries.cudnn();
  }
}

}  // namespace

template <auto Member>
struct WrappedCall;

template <class Table, class Return, class... Arguments, Return (*Table::*Member)(Arguments...)>
struct WrappedCall<Member> {
  static inline const char* name = "";

  static Return call(Arguments... arguments) {
    WrappedLibraries& libraries = *current();
    const Table& real = real_table<Table>(*libraries.real_);
    if constexpr (!kIsStatus<Return>) {
      if constexpr (kIsOneOf<Member, &CudnnApi::get_version>) {
        if (libraries.cudnn_version_ != 0) return libraries.cudnn_version_;
      }
      if constexpr (kIsOneOf<Member, &CublasLtApi::get_version>) {
        if (libraries.cublaslt_version_ != 0) return libraries.cublaslt_version_;
      }
      return (real.*Member)(arguments...);
    } else {
      if constexpr (!kGivesBack<Member> && !kMustWork<Member>) {
        if (!is_preference<Member>(arguments...) && libraries.fails(name)) {
          return fail(libraries, real, arguments...);
        }
      }
      const Return status = (real.*Member)(arguments...);
      if constexpr (kMakes<Member>) libraries.live_ += status == Return{} ? 1 : 0;
      if constexpr (kGivesBack<Member>) --libraries.live_;
      if constexpr (kIsBooked<Member>) libraries.book(name);
      return status;
    }
  }

 private:
  static Return fail(WrappedLibraries& libraries, const Table& real, Arguments... arguments) {
    // A capture ends also when this fails.
    if constexpr (kIsOneOf<Member, &DriverApi::stream_end_capture>) {
      CUgraph* graph = std::get<1>(std::tuple(arguments...));
      if ((real.*Member)(arguments...) == CUDA_SUCCESS) real.graph_destroy(*graph);
      *graph = nullptr;
    }
    return status_of<Return>(libraries.failure_);
  }
};

WrappedLibraries::WrappedLibraries(std::shared_ptr<const cuda::Libraries> real)
    : real_(std::move(real)) {
  current() = this;
#define KILN_NAME_OF(name) #name
#define KILN_TEXT(name) KILN_NAME_OF(name)
#define KILN_WRAP(table, Table, member, function)   \
  table.member = WrappedCall<&Table::member>::call; \
  WrappedCall<&Table::member>::name = KILN_TEXT(function);
#define KILN_WRAP_DRIVER(member, function) KILN_WRAP(driver_, DriverApi, member, function)
#define KILN_WRAP_CUBLASLT(member, function) KILN_WRAP(cublaslt_, CublasLtApi, member, function)
#define KILN_WRAP_CUDNN(member, function) KILN_WRAP(cudnn_, CudnnApi, member, function)
  // What a table has beyond its list stays as it is.
  if (const auto real = real_->driver(); real.ok()) driver_ = **real;
  KILN_CUDA_DRIVER_FUNCTIONS(KILN_WRAP_DRIVER)
  KILN_CUBLASLT_FUNCTIONS(KILN_WRAP_CUBLASLT)
  KILN_CUDNN_FUNCTIONS(KILN_WRAP_CUDNN)
}

WrappedLibraries::~WrappedLibraries() {
  if (current() == this) current() = nullptr;
}

Result<const DriverApi*> WrappedLibraries::driver() const {
  KILN_RETURN_IF_ERROR(real_->driver());
  return &driver_;
}
Result<const CublasLtApi*> WrappedLibraries::cublaslt() const {
  KILN_RETURN_IF_ERROR(real_->cublaslt());
  return &cublaslt_;
}
Result<const CudnnApi*> WrappedLibraries::cudnn() const {
  KILN_RETURN_IF_ERROR(real_->cudnn());
  return &cudnn_;
}

void WrappedLibraries::fail_call(int n, Failure failure) {
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  failed_.clear();
  fail_at_ = calls_ + n;
}
void WrappedLibraries::fail_function(const std::string& name, Failure failure) {
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  fail_name_ = name;
}
void WrappedLibraries::fail_nothing() {
  const std::lock_guard lock(mutex_);
  fail_at_ = -1;
  fail_name_.clear();
}
std::string WrappedLibraries::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

bool WrappedLibraries::fails(const char* name) {
  const bool chosen = calls_++ == fail_at_;
  const std::lock_guard lock(mutex_);
  if (!chosen && (fail_name_.empty() || fail_name_ != name)) return false;
  failed_ = name;
  return true;
}

void WrappedLibraries::book(const char* name) {
  if (!booking_) return;
  const std::lock_guard lock(mutex_);
  size_t free = 0, total = 0;
  if ((*real_->driver())->mem_get_info(&free, &total) != CUDA_SUCCESS) return;
  booked_[name] += static_cast<int64_t>(free_bytes_) - static_cast<int64_t>(free);
  free_bytes_ = free;
}

void WrappedLibraries::start_booking() {
  const std::lock_guard lock(mutex_);
  booked_.clear();
  size_t total = 0;
  booking_ = (*real_->driver())->mem_get_info(&free_bytes_, &total) == CUDA_SUCCESS;
}
std::map<std::string, int64_t> WrappedLibraries::stop_booking() {
  booking_ = false;
  const std::lock_guard lock(mutex_);
  return std::exchange(booked_, {});
}

}  // namespace kiln::testing

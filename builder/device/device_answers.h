// DeviceAnswers: what only a GPU's own machine can say, beside times: the algorithms and plans that
// its libraries offer, the precision that a model was measured to need. A timing cache keeps them,
// so that later builds, and builds without the GPU, are told the same.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "formats/result.h"
#include "formats/timing_cache/timing_cache.h"

namespace kiln {

// Not thread-safe: a build asks from one thread.
class DeviceAnswers {
 public:
  using Values = std::vector<std::string>;
  using Ask = std::function<Result<Values>()>;

  DeviceAnswers() = default;
  explicit DeviceAnswers(TimingCache::Answers known) : known_(std::move(known)) {}

  // What is recorded, else what `ask` says, which is recorded unless it fails in another way than
  // kUnsupported, which is a refusal. Null for `ask`: the device is elsewhere, and a question that
  // was not asked there is kUnsupported and counts as missing.
  Result<Values> get(const std::string& question, const Ask& ask);
  void record(const std::string& question, Values values);
  const RecordedAnswer* find(const std::string& question) const;

  const TimingCache::Answers& known() const { return known_; }
  size_t missing() const { return missing_; }

  // While one lives, values are remembered, but recorded only once they are asked for again without
  // one: candidates that lose leave nothing behind. Refusals are recorded at once.
  class Trial {
   public:
    explicit Trial(DeviceAnswers* answers);  // null: does nothing
    ~Trial();
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

   private:
    DeviceAnswers* answers_;
  };
  // Forgets what was asked in trials only.
  void end_trials() { tried_.clear(); }

 private:
  TimingCache::Answers known_;
  std::map<std::string, Values, std::less<>> tried_;
  bool on_trial_ = false;
  size_t missing_ = 0;
};

// "<kind>-<16 hex digits of a hash of the text>": a question that stays short.
std::string hashed_question(const std::string& kind, std::string_view text);

}  // namespace kiln

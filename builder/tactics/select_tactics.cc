#include "builder/tactics/select_tactics.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "builder/cuda/build_tools.h"
#include "builder/tactics/finish_lowering.h"
#include "builder/tactics/region_work.h"

namespace kiln {
namespace {

// Work of a large region, Trial::kIfSmall.
constexpr uint64_t kLargeFlops = 20'000'000, kManySteps = 100'000;
constexpr double kNoise = 0.02;  // of the fastest candidate's time

struct Entry {
  const TacticProvider* provider = nullptr;
  Tactic tactic;
  report::Candidate record;
};

std::string cache_key(const Entry& entry) {
  return std::string(entry.provider->name) + "@" + std::to_string(entry.provider->version) + "/" +
         entry.tactic.key;
}

class Selector {
 public:
  Selector(const TacticQuery& query, SelectionContext& context)
      : query_(query), context_(context), key_(region_key(query)) {}

  void lower_known_winner() {
    collect();
    for (Entry& entry : entries_) {
      if (const Timing* known = find(entry)) {
        apply(*known, entry);
      } else if (context_.judge != nullptr && skip_reason(entry).empty()) {
        return;
      }
    }
    if (const Entry* winner = fastest()) static_cast<void>(lower(*winner));
  }

  Result<std::optional<Selection>> run() {
    const size_t missing = missing_answers();
    collect();
    if (missing_answers() > missing) return std::optional<Selection>();
    KILN_RETURN_IF_ERROR(measure_all());
    while (Entry* winner = fastest()) {
      const size_t before = missing_answers();
      auto lowered = lower(*winner);
      // Even where it lowered: a call without its answer is left to the host.
      if (missing_answers() > before) return std::optional<Selection>();
      if (lowered.ok()) return std::optional(finish(*winner, std::move(*lowered)));
      // Only a cache entry can be right and still not lower: made by another build of a library.
      fail(*winner, lowered.error().message);
    }
    if (unknown_) return std::optional<Selection>();
    return none_right();
  }

 private:
  DeviceAnswers* answers() const {
    return context_.cuda == nullptr ? nullptr : context_.cuda->answers.get();
  }
  size_t missing_answers() const { return answers() == nullptr ? 0 : answers()->missing(); }

  void collect() {
    for (const TacticProvider& provider : context_.providers) {
      std::string refusal;
      const auto tactics = provider.candidates(query_, refusal);
      if (tactics.empty()) record_.refusals.push_back({std::string(provider.name), refusal});
      for (const Tactic& tactic : tactics) {
        Entry entry{&provider, tactic, {}};
        entry.record.provider = provider.name;
        entry.record.key = tactic.key;
        entries_.push_back(std::move(entry));
      }
    }
  }

  const Timing* find(const Entry& entry) const {
    return context_.cache.find(context_.environment, key_, cache_key(entry));
  }

  Result<Lowered> lower(const Entry& entry) const {
    KILN_ASSIGN_OR_RETURN(Lowered lowered, entry.provider->lower(query_, entry.tactic));
    KILN_RETURN_IF_ERROR(finish_lowering(query_, lowered));
    return lowered;
  }

  static void fail(Entry& entry, const std::string& reason) {
    entry.record.verdict = report::Verdict::kFailed;
    entry.record.reason = reason;
  }

  // Why the entry need not be tried; "" if it must be.
  std::string skip_reason(const Entry& entry) const {
    const Trial trial = entry.provider->trial;
    const bool right = best_us_ < std::numeric_limits<double>::infinity();
    if (!right || trial == Trial::kAlways) return "";
    if (trial == Trial::kNever) return "not tried: a better candidate is right";
    const RegionWork work = region_work(*query_.region.body);
    const bool large = work.flops > kLargeFlops || work.steps > kManySteps;
    return large ? "not timed: the region is large and a better candidate is right" : "";
  }

  Result<> measure_all() {
    const DeviceAnswers::Trial trial(answers());
    if (context_.cuda != nullptr && context_.judge != nullptr) {
      compile_ahead(*context_.cuda, query_.device.threads, [&] { lower_new(); });
    }
    for (Entry& entry : entries_) KILN_RETURN_IF_ERROR(measure(entry));
    return Ok();
  }

  // What is going to be tried, whatever wins.
  void lower_new() const {
    for (const Entry& entry : entries_) {
      if (entry.provider->trial == Trial::kAlways && find(entry) == nullptr) {
        static_cast<void>(lower(entry));
      }
    }
  }

  Result<> measure(Entry& entry) {
    if (const Timing* known = find(entry)) {
      apply(*known, entry);
      return Ok();
    }
    if (const std::string reason = skip_reason(entry); !reason.empty()) {
      entry.record.verdict = report::Verdict::kSkipped;
      entry.record.reason = reason;
      return Ok();
    }
    const size_t missing = missing_answers();
    auto lowered = lower(entry);
    if (context_.judge == nullptr && (lowered.ok() || missing_answers() > missing)) {
      entry.record.verdict = report::Verdict::kSkipped;
      entry.record.reason = "the timing cache does not know it";
      unknown_ = true;
      return Ok();
    }
    if (!lowered.ok()) {
      fail(entry, lowered.error().message);
      return Ok();
    }
    if (!begun_) {
      auto begun = context_.judge->begin(query_);
      if (!begun.ok()) return std::move(begun).error().context("reference of the region");
      begun_ = true;
    }
    const Timing timing = context_.judge->judge(*lowered, best_us_);
    apply(timing, entry);
    context_.cache.record(context_.environment, key_, cache_key(entry), timing);
    return Ok();
  }

  void apply(const Timing& timing, Entry& entry) {
    entry.record.median_us = timing.median_us;
    entry.record.spread_us = timing.spread_us;
    entry.record.max_abs_error = timing.max_abs_error;
    entry.record.max_rel_error = timing.max_rel_error;
    entry.record.reason = timing.error;
    entry.record.verdict = timing.verified ? report::Verdict::kSlower : report::Verdict::kWrong;
    if (timing.verified) best_us_ = std::min(best_us_, timing.median_us);
  }

  Entry* fastest() {
    double best = std::numeric_limits<double>::infinity();
    for (const Entry& entry : entries_) {
      if (entry.record.verdict == report::Verdict::kSlower) {
        best = std::min(best, entry.record.median_us);
      }
    }
    for (Entry& entry : entries_) {
      if (entry.record.verdict == report::Verdict::kSlower &&
          entry.record.median_us <= best * (1 + kNoise)) {
        return &entry;
      }
    }
    return nullptr;
  }

  Selection finish(Entry& winner, Lowered lowered) {
    Selection selection{std::move(lowered), {key_, cache_key(winner)}, std::move(record_)};
    winner.record.verdict = report::Verdict::kChosen;
    const RegionWork work = region_work(*query_.region.body);
    selection.record.bytes_read = work.bytes_read;
    selection.record.bytes_written = work.bytes_written;
    selection.record.flops = work.flops;
    selection.record.chosen = &winner - entries_.data();
    const uint64_t workspace = largest_workspace(selection.lowered);
    winner.record.workspace_bytes = workspace;
    for (Entry& entry : entries_) {
      if (entry.record.verdict == report::Verdict::kSlower) {
        entry.record.reason = slower_by(entry.record.median_us, winner.record.median_us);
      }
      selection.record.candidates.push_back(std::move(entry.record));
    }
    return selection;
  }

  static std::string slower_by(double us, double best_us) {
    char text[64];
    if (us <= best_us * (1 + kNoise))
      return "as fast within the noise; the chosen one is preferred";
    std::snprintf(text, sizeof text, "%.2f times slower", us / std::max(best_us, 1e-9));
    return text;
  }

  Error none_right() const {
    std::string message = "no tactic is right:";
    for (const Entry& entry : entries_) {
      message += " " + std::string(entry.provider->name) + "/" + entry.tactic.key + ": " +
                 entry.record.reason + ";";
    }
    message.pop_back();
    return {ErrorCode::kVerification, message};
  }

  const TacticQuery& query_;
  SelectionContext& context_;
  std::string key_;
  std::vector<Entry> entries_;
  report::Region record_;
  double best_us_ = std::numeric_limits<double>::infinity();
  bool begun_ = false;
  bool unknown_ = false;  // a candidate could not be judged
};

}  // namespace

std::string region_key(const TacticQuery& query) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(query.region.body->fingerprint()));
  std::string key = std::string(ir::to_string(query.region.kind)) + "-" + digits + "-";
  for (const auto& constant : query.constants) key += constant ? 'c' : 'v';
  return key;
}

Result<std::optional<Selection>> select_tactic(const TacticQuery& query,
                                               SelectionContext& context) {
  auto selection = Selector(query, context).run();
  if (context.cuda != nullptr) context.cuda->answers->end_trials();
  return selection;
}

void lower_known_winner(const TacticQuery& query, SelectionContext& context) {
  Selector(query, context).lower_known_winner();
}

void ban_tactic(const TacticKey& key, SelectionContext& context) {
  const Timing* known = context.cache.find(context.environment, key.region, key.candidate);
  Timing timing = known == nullptr ? Timing() : *known;
  timing.verified = false;
  timing.error = "disagreed with the reference in the finished engine";
  context.cache.record(context.environment, key.region, key.candidate, std::move(timing));
}

}  // namespace kiln

// Selection: for one region, every provider's candidates, each verified, then timed; the fastest
// right one wins. Pure bookkeeping around the injected judge and cache.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "builder/tactics/judge.h"
#include "builder/tactics/tactic.h"
#include "formats/report/report.h"
#include "formats/timing_cache/timing_cache.h"

namespace kiln {

struct SelectionContext {
  std::span<const TacticProvider> providers;
  Judge* judge;  // null: the device is elsewhere, what the cache does not know is not known
  TimingCache& cache;
  std::string environment;          // everything outside of the region that a time depends on
  const CudaTools* cuda = nullptr;  // on target cuda
};

// A region's tactic in the timing cache.
struct TacticKey {
  std::string region, candidate;
};

struct Selection {
  Lowered lowered;  // of the winner, finished
  TacticKey winner;
  report::Region record;  // candidates, refusals, chosen, work; names are the caller's to fill in
};

// kVerification: no candidate is right; the message lists what each did. Candidates within the
// noise of the fastest count as equal: the first in the providers' order wins. Nothing: there is no
// judge, and the cache does not know the region or the winner's plan.
Result<std::optional<Selection>> select_tactic(const TacticQuery& query, SelectionContext& context);

// Lowers the tactic that select_tactic() would choose, if the cache knows all that it needs, and
// forgets it: for compile_ahead().
void lower_known_winner(const TacticQuery& query, SelectionContext& context);

// A finished engine was found wrong because of this tactic: it is not chosen again.
void ban_tactic(const TacticKey& key, SelectionContext& context);

// Identical regions have one key: operations, types, and which inputs are constant.
std::string region_key(const TacticQuery& query);

}  // namespace kiln

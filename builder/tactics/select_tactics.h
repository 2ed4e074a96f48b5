// Selection: for one region, every provider's candidates, each verified, then timed; the fastest
// right one wins. Pure bookkeeping around the injected judge and cache.
#pragma once
#include <set>
#include <span>
#include <string>

#include "builder/tactics/judge.h"
#include "builder/tactics/tactic.h"
#include "formats/report/report.h"
#include "formats/timing_cache/timing_cache.h"

namespace kiln {

struct SelectionContext {
  std::span<const TacticProvider> providers;
  Judge& judge;
  TimingCache& cache;
  std::string environment;  // everything outside of the region that a time depends on
  // "region key/provider/tactic" of what verification found wrong in a finished engine.
  std::set<std::string> banned = {};
  const CudaTools* cuda = nullptr;  // on target cuda
};

struct Selection {
  Lowered lowered;        // of the winner, finished
  std::string winner;     // as in SelectionContext::banned
  report::Region record;  // candidates, refusals, chosen, work; names are the caller's to fill in
};

// kVerification: no candidate is right; the message lists what each did. Candidates within the
// noise of the fastest count as equal: the first in the providers' order wins.
Result<Selection> select_tactic(const TacticQuery& query, SelectionContext& context);

// Identical regions have one key: operations, types, and which inputs are constant.
std::string region_key(const TacticQuery& query);

}  // namespace kiln

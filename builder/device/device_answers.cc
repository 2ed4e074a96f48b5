#include "builder/device/device_answers.h"

#include <xxhash.h>

#include <cstdio>

namespace kiln {

Result<DeviceAnswers::Values> DeviceAnswers::get(const std::string& question, const Ask& ask) {
  if (const RecordedAnswer* answer = find(question)) {
    if (answer->refusal.empty()) return answer->values;
    return Error{ErrorCode::kUnsupported, answer->refusal};
  }
  if (const auto tried = tried_.find(question); tried != tried_.end()) {
    if (!on_trial_) record(question, tried->second);
    return tried->second;
  }
  if (!ask) {
    ++missing_;
    return Error{ErrorCode::kUnsupported, "the timing cache does not tell " + question};
  }
  auto answer = ask();
  if (answer.ok() && on_trial_) {
    tried_[question] = *answer;
  } else if (answer.ok()) {
    record(question, *answer);
  } else if (answer.error().code == ErrorCode::kUnsupported) {
    known_[question] = {{}, answer.error().message};
  }
  return answer;
}

void DeviceAnswers::record(const std::string& question, Values values) {
  known_[question] = {std::move(values), ""};
}

const RecordedAnswer* DeviceAnswers::find(const std::string& question) const {
  const auto found = known_.find(question);
  return found == known_.end() ? nullptr : &found->second;
}

DeviceAnswers::Trial::Trial(DeviceAnswers* answers) : answers_(answers) {
  if (answers_ != nullptr) answers_->on_trial_ = true;
}

DeviceAnswers::Trial::~Trial() {
  if (answers_ != nullptr) answers_->on_trial_ = false;
}

std::string hashed_question(const std::string& kind, std::string_view text) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return kind + "-" + digits;
}

}  // namespace kiln

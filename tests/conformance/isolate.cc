#include "tests/conformance/isolate.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace kiln::conformance {
namespace {

using Clock = std::chrono::steady_clock;

void write_all(int pipe, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(pipe, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<size_t>(written);
  }
}

[[noreturn]] void run_child(const std::function<Outcome()>& body, int pipe) {
  const Outcome outcome = body();
  write_all(pipe, std::to_string(static_cast<int>(outcome.status)) + outcome.reason);
  fflush(nullptr);
  _exit(0);
}

// Reads until the child closes its end; false when the time is over.
bool read_until_closed(int pipe, Clock::time_point deadline, std::string& text) {
  char buffer[4096];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{pipe, POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) <= 0) return false;
    const ssize_t size = read(pipe, buffer, sizeof buffer);
    if (size <= 0) return true;
    text.append(buffer, static_cast<size_t>(size));
  }
}

Outcome decode(const std::string& text, int state, bool finished) {
  Outcome outcome;
  outcome.status = Status::kCrashed;
  if (!finished) {
    outcome.reason = "ran out of time";
  } else if (WIFSIGNALED(state)) {
    outcome.reason = std::string("signal ") + strsignal(WTERMSIG(state));
  } else if (text.empty()) {
    outcome.reason = "exit code " + std::to_string(WEXITSTATUS(state));
  } else {
    outcome.status = static_cast<Status>(text[0] - '0');
    outcome.reason = text.substr(1);
  }
  return outcome;
}

}  // namespace

Outcome run_isolated(const std::function<Outcome()>& body, double limit_seconds) {
  int ends[2];
  if (pipe(ends) != 0) return {Status::kFailed, "no pipe", 0, 0};
  fflush(nullptr);
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child < 0) return {Status::kFailed, "cannot fork", 0, 0};
  if (child == 0) {
    close(ends[0]);
    run_child(body, ends[1]);
  }
  close(ends[1]);
  std::string text;
  const auto limit =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_seconds));
  const bool finished = read_until_closed(ends[0], start + limit, text);
  close(ends[0]);
  if (!finished) kill(child, SIGKILL);
  int state = 0;
  rusage usage{};
  wait4(child, &state, 0, &usage);
  Outcome outcome = decode(text, state, finished);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  outcome.megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
  return outcome;
}

}  // namespace kiln::conformance

#pragma once

namespace nsimplex {

/// Lets Ctrl-C end a long computation of a host program, such as a Python interpreter, whose own
/// handler only takes a note and acts once the computation has returned. As long as one of these
/// lives, SIGINT also sets a flag that check() reads; the host's handler is called as before. Where
/// SIGINT has its default action, which ends the process, or is ignored, nothing is changed.
///
/// Several may live at once, on any threads.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// Throws std::runtime_error where SIGINT came since the first living one was made.
  void check() const;
};

}  // namespace nsimplex

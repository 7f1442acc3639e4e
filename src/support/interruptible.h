// Lets Ctrl-C end a long computation in a host program such as Python.

#pragma once

namespace nsimplex {

/// Lets Ctrl-C end a long computation in a host program such as a Python interpreter, whose own
/// handler only sets a flag and acts once the computation has returned. While an object of this
/// class lives, SIGINT also sets a flag that came() reads. The host's handler is called as before.
/// If SIGINT has its default action, which ends the process, or is ignored, nothing changes.
///
/// Several may live at once, on any threads.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// Whether SIGINT came since the first living object was made.
  bool came() const;

  /// Throws std::runtime_error if it came.
  void check() const;
};

}  // namespace nsimplex

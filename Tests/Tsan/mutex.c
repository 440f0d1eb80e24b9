// Tells ThreadSanitizer what Swift's Mutex orders.
//
// Synchronization.Mutex takes and leaves a free lock with atomics that are compiled into our code, where TSan sees them. A
// lock that somebody waits for is handed over by the kernel (FUTEX_LOCK_PI) inside libswiftSynchronization, which is not
// instrumented, so that everything behind a contended lock is reported as a race. Preloaded, this stands before those
// three functions and says of each what it means; nothing is suppressed. swift/stdlib/public/Synchronization/Mutex/LinuxImpl.swift.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define SWIFT __attribute__((swiftcall))
#define CONTEXT __attribute__((swift_context))
#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK_SLOW "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

// The runtime's, in the program that TSan was linked into. Other programs have none, and lose nothing.
void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));

typedef SWIFT void (*lock_slow)(uint32_t thread, CONTEXT void *handle);
typedef SWIFT bool (*try_lock_slow)(CONTEXT void *handle);
typedef SWIFT void (*unlock_slow)(CONTEXT void *handle);

static void *real(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) abort();
    return function;
}

SWIFT void lockSlow(uint32_t thread, CONTEXT void *handle) __asm__(LOCK_SLOW);
SWIFT bool tryLockSlow(CONTEXT void *handle) __asm__(TRY_LOCK_SLOW);
SWIFT void unlockSlow(CONTEXT void *handle) __asm__(UNLOCK_SLOW);

SWIFT void lockSlow(uint32_t thread, CONTEXT void *handle) {
    ((lock_slow)real(LOCK_SLOW))(thread, handle);
    if (__tsan_acquire) __tsan_acquire(handle);
}

SWIFT bool tryLockSlow(CONTEXT void *handle) {
    bool taken = ((try_lock_slow)real(TRY_LOCK_SLOW))(handle);
    if (taken && __tsan_acquire) __tsan_acquire(handle);
    return taken;
}

SWIFT void unlockSlow(CONTEXT void *handle) {
    if (__tsan_release) __tsan_release(handle);
    ((unlock_slow)real(UNLOCK_SLOW))(handle);
}

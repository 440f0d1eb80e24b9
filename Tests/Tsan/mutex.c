// Reports the happens-before order of Swift's Mutex to ThreadSanitizer.
//
// Synchronization.Mutex acquires and releases an uncontended lock with atomics that are compiled into our code, where
// TSan sees them. The kernel hands a contended lock over (FUTEX_LOCK_PI) inside libswiftSynchronization, which is not
// instrumented. TSan would therefore report a race for every access behind a contended lock.
//
// This preloaded library wraps the three functions and calls the TSan runtime. It suppresses no reports. Source:
// swift/stdlib/public/Synchronization/Mutex/LinuxImpl.swift.
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

// Functions of the TSan runtime. Weak, because programs without TSan do not have them.
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

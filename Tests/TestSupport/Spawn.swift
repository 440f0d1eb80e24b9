import Glibc

/// Starts processes with posix_spawn(3): in their own group, with default signals, inheriting only three streams.
enum Spawn {
    static func start(
        _ arguments: [String],
        environment: [String: String],
        input: CInt,
        output: CInt,
        error: CInt
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO)

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // An ignored SIGPIPE survives exec(2), and the test process may ignore it.
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
        posix_spawnattr_setflags(&attributes, CShort(flags))

        let argv = CStrings(arguments)
        let envp = CStrings(environment.map { "\($0.key)=\($0.value)" })
        var process = pid_t()
        let code = posix_spawn(&process, arguments[0], &actions, &attributes, argv.pointers, envp.pointers)
        guard code == 0 else { throw TestSupportError("\(arguments[0]) cannot be started: \(SystemCode.text(code))") }
        return process
    }

    /// A NULL-terminated array of C strings, freed with its owner.
    private final class CStrings {
        let pointers: [UnsafeMutablePointer<CChar>?]

        init(_ strings: [String]) { pointers = strings.map { strdup($0) } + [nil] }

        deinit { for pointer in pointers { free(pointer) } }
    }
}

import CLibFuzzer
import Glibc
import Synchronization

/// Runs a parser with inputs of libFuzzer: `fuzz TARGET [libFuzzer's options] [FOLDER...]`, `fuzz list`.
@main
enum Fuzz {
    private static let target = Mutex<FuzzTarget?>(nil)

    static func main() {
        var arguments = CommandLine.arguments
        if arguments.dropFirst() == ["list"] {
            for target in FuzzTarget.allCases { print(target.rawValue) }
            return
        }
        guard arguments.count > 1, let target = FuzzTarget(rawValue: arguments.remove(at: 1)) else {
            say("usage: fuzz list | fuzz TARGET [OPTION...] [FOLDER...]")
            exit(64)
        }
        Self.target.withLock { $0 = target }
        var argv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = .allocate(capacity: arguments.count + 1)
        for (index, argument) in arguments.enumerated() { argv?[index] = strdup(argument) }
        argv?[arguments.count] = nil
        var argc = CInt(arguments.count)
        exit(LLVMFuzzerRunDriver(&argc, &argv) { Fuzz.run(UnsafeBufferPointer(start: $0, count: $1)) })
    }

    private static func run(_ input: UnsafeBufferPointer<UInt8>) -> CInt {
        do {
            try target.withLock { $0 }?.check(Array(input))
        } catch {
            // libFuzzer saves the input when the process aborts.
            say("\(error)")
            abort()
        }
        return 0
    }

    private static func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }
}

import Glibc

/// The program's door, kept empty so that everything behind it can be tested.
@main
enum Main {
    static func main() async {
        // A reader that goes away is an error of one write (EPIPE), not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        exit(await CommandRunner.run(Array(CommandLine.arguments.dropFirst())))
    }
}

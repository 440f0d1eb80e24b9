import ArgumentParser
import FoundationEssentials
import Glibc
import SystemIO
import TestSupport

/// Compares Patchbay with other forwarders to a phone's port on this machine.
@main
struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Compare Patchbay, iproxy, socat and a direct connection, interleaved in one run.",
        discussion: """
            Started by `make bench`, which builds what it measures. Prints medians with the lowest and the highest figure, \
            and ratios of figures of the same round; keeps all figures in .build/bench. A run takes about ten minutes, and \
            says something only on a machine that does nothing else.

              make bench ARGS="--only throughput,roundtrip --rounds 7"
            """
    )

    @Option(help: "Rounds of each timed trial.")
    var rounds = 5
    @Option(
        help: ArgumentHelp(
            "Only these: \(Topic.allCases.map(\.rawValue).joined(separator: ", ")).",
            valueName: "topics"
        ),
        transform: { text in
            try text.split(separator: ",").map { word in
                guard let topic = Topic(rawValue: String(word)) else { throw ValidationError("There is no “\(word)”.") }
                return topic
            }
        }
    )
    var only: [Topic] = Topic.allCases
    @Flag(help: "Leave the real usbmuxd out.")
    var plain = false
    @Flag(help: "Tiny sizes and two rounds, to see that everything works.")
    var quick = false
    @Option(help: "The folder for the figures.")
    var output = ".build/bench"

    func validate() throws {
        if rounds < 1 { throw ValidationError("There must be one round at least.") }
    }

    func run() async throws {
        // 5,000 clients and their servers are in this process, and children inherit the limit.
        ProcessLimits.raiseDescriptors()
        let plan = BenchmarkPlan(
            rounds: quick ? min(rounds, 2) : rounds,
            topics: Set(only),
            beds: plain ? [.plain] : TestBed.Kind.allCases,
            isQuick: quick
        )
        try await withScratchFolder { scratch in
            Interruption.watch(removing: scratch.path)
            let machine = await Machine.here(in: scratch)
            var record = Record(
                date: .now,
                commandLine: CommandLine.arguments,
                machine: machine,
                results: try await BenchmarkRun(plan, in: scratch, say: Self.say).results()
            )
            record.loadAtEnd = await Machine.here(in: scratch).load
            let kept = try record.save(in: output)
            print("\n\(record.tables(.spreads))\n\(machine.summary)\nkept: \(kept).json and .md")
        }
    }

    /// Prints progress to standard error without buffering.
    private static func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }
}

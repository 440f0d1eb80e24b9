import ArgumentParser
import Client
import Model

struct ClockRecoverCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recover",
        abstract: "Let the broker go by the machine's clock again, which you have set right.",
        discussion: """
            Whatever has ended until now stays ended, and whatever was made while the clock was ahead ends, so that \
            nothing lives longer than it was meant to. Look at `date` first.

              patchbay clock recover
            """
    )

    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let ended = try await options.client.recoverClock().ended
        let what = ended.isEmpty ? "Nothing" : ended.sorted().joined(separator: ", ")
        try options.output.line("The broker goes by the machine's clock again. \(what) ended by that.")
    }
}

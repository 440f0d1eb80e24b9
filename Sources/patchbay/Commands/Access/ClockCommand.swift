import ArgumentParser
import Client
import Model

struct ClockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clock",
        abstract: "Repair the broker's sense of time after the machine's clock was wrong.",
        discussion: """
            What may come in ends by a time that never goes back, so that a clock that is set back revives nothing. After \
            a clock was far ahead, and was set right, that time is ahead still: what is made now would end too late, and \
            `patchbay status` says so.

              patchbay clock recover
            """,
        subcommands: [ClockRecoverCommand.self]
    )
}

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

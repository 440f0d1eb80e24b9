import ArgumentParser

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

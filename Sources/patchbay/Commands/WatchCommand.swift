import ArgumentParser

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Follow every change of endpoints and phones as it happens.",
        discussion: """
            Begins with the list as it stands. A broker that restarts is waited for, and nothing that happened \
            meanwhile is left out. Each line is a change: when, + new, ~ changed (and what) or - forgotten or unplugged.

              patchbay watch
              patchbay watch --json | jq -c 'select(.event == "endpoint")'
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let feed = WatchPrinter(
            selection: WatchPrinter.Selection(),
            isJSON: format.json,
            output: options.output,
            errors: .errors()
        )
        try await feed.run(options.client)
    }
}

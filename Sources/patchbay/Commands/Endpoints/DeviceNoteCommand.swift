import ArgumentParser
import Client
import Model

struct DeviceNoteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "note",
        abstract: "Give a phone a label and a note.",
        discussion: """
            Both are shown in the list of phones, in `patchbay show`, in the dashboard and on all hosts of the team. An \
            option that is left out changes nothing, and an empty text removes the label or the note.

              patchbay devices note 00008030-000D9C2E0C41802E --label "drawer 3"
              patchbay devices note 0000803 --note "cracked screen" --label ''
            """
    )

    @Argument(help: ArgumentHelp("The phone: UDID, prefix or name.", valueName: "udid"), completion: .objects(.devices))
    var device: String
    @Option(help: ArgumentHelp("A short name, at most 60 characters.", valueName: "text"))
    var label: String?
    @Option(help: ArgumentHelp("A note, at most 500 characters.", valueName: "text"))
    var note: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if label == nil, note == nil { throw ValidationError("Give --label, --note or both.") }
    }

    func run() async throws {
        let client = try options.client
        let devices = try await client.devices()
        let udid = try DeviceSelector(text: device, command: "patchbay devices note UDID").choose(among: devices)
        let known = devices.first { $0.udid == udid }
        let changed = DeviceNote(
            label: label.map { SanitizedText($0, limit: .max) } ?? known?.label,
            note: note.map { SanitizedText($0, limit: .max) } ?? known?.note
        )
        if let problem = changed.validationError { throw CLIError.usage(problem, try: "shorten the text") }
        try await client.setNote(changed, of: udid)
        let text = [changed.label, changed.note].compactMap { $0?.isEmpty == false ? $0?.text : nil }
        try options.output.line("\(udid): \(text.isEmpty ? "no label and no note" : text.joined(separator: "; "))")
    }
}

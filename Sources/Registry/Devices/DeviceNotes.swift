package import Model
package import SystemIO

/// The owners' notes of phones. They are persistent, also for phones that are not attached.
package actor DeviceNotes {
    /// A note in the file.
    package struct Record: Hashable, Sendable, Codable {
        let udid: UDID
        let note: DeviceNote
    }

    /// The maximum number of phones with a note.
    static let limit = 1_024

    private var notes: [UDID: DeviceNote]
    private let file: StateFile<[Record]>
    private let devices: AttachedDevices

    package init(file: StateFile<[Record]>, devices: AttachedDevices) async throws(StateError) {
        self.file = file
        self.devices = devices
        let records = try await file.read() ?? []
        notes = Dictionary(records.prefix(Self.limit).map { ($0.udid, $0.note) }) { first, _ in first }
        await devices.setNotes(notes)
    }

    package func note(of udid: UDID) -> DeviceNote? { notes[udid] }

    /// Sets or removes the note of a phone. It is on disk before this function returns.
    ///
    /// - Throws: `Problem` for a note that is too long, too many notes, or a note that cannot be saved.
    package func set(_ note: DeviceNote, of udid: UDID) async throws {
        if let problem = note.validationError { throw Problem(.badRequest, problem) }
        let before = notes
        let isNew = notes[udid] == nil
        guard note.isEmpty || !isNew || notes.count < Self.limit else {
            throw Problem(
                .limit,
                "\(Self.limit) phones have a note already",
                hint: "remove one: patchbay devices note UDID --label '' --note ''"
            )
        }
        notes[udid] = note.isEmpty ? nil : note.normalized
        guard notes != before else { return }
        do {
            try await file.write(
                notes.sorted { $0.key < $1.key }.map { Record(udid: $0.key, note: $0.value) }
            )
        } catch {
            notes[udid] = before[udid]
            throw Problem(.unavailable, "the note was not saved: \(error)", hint: "patchbay doctor")
        }
        await devices.setNotes(notes)
    }
}

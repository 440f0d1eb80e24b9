/// An owner's label and note of a phone: the body of `PUT /v1/devices/{udid}/note`. Both empty remove the note.
package struct DeviceNote: Hashable, Sendable, Codable {
    /// A short name of the phone, such as "drawer 3".
    package var label: SanitizedText?
    /// A sentence about the phone, such as "cracked screen".
    package var note: SanitizedText?

    /// The maximum numbers of characters.
    package static let labelLimit = 60
    package static let noteLimit = 500

    package init(label: SanitizedText? = nil, note: SanitizedText? = nil) {
        self.label = label
        self.note = note
    }

    package var isEmpty: Bool { (label?.isEmpty ?? true) && (note?.isEmpty ?? true) }

    /// The reason why the note is too long; nil if it is not.
    package var validationError: String? {
        if let label, Self.exceeds(label, Self.labelLimit) {
            return "a label has at most \(Self.labelLimit) characters"
        }
        if let note, Self.exceeds(note, Self.noteLimit) { return "a note has at most \(Self.noteLimit) characters" }
        return nil
    }

    /// Returns the note without empty members.
    package var normalized: DeviceNote {
        DeviceNote(label: label?.isEmpty == true ? nil : label, note: note?.isEmpty == true ? nil : note)
    }

    /// One character can consist of any number of scalars, so bytes count too.
    private static func exceeds(_ text: SanitizedText, _ limit: Int) -> Bool {
        text.text.utf8.count > 4 * limit || text.text.count > limit
    }
}

import JSON
import Model

/// Adds a server to the content of a configuration file, or removes one.
struct ConfigurationEdit {
    let target: ConfigurationTarget

    /// Returns the content with the entry. Equal content means that the entry is there already.
    ///
    /// - Throws: `CLIError` if that would lose a part of the file; `candidates` then has the lines to add by hand.
    func adding(_ entry: ServerEntry, to content: [UInt8]) throws(CLIError) -> [UInt8] {
        let hint = "add these lines to \(target.file) below \(target.client.serversPath[0])"
        do {
            if target.client.isTOML {
                var editor = try TOMLTextEditor(content)
                try refuseForeign(editor.members(of: target.path).map(JSON.object))
                try editor.set(target.path, entry.members(for: target.client))
                return editor.bytes
            }
            let isEmpty = content.allSatisfy { [9, 10, 13, 32].contains($0) }
            var editor = try JSONTextEditor(isEmpty ? Array("{}\n".utf8) : content)
            let old = editor.value(at: target.path)
            try refuseForeign(old)
            if old == nil {
                try editor.set(target.path, to: .object(entry.members(for: target.client)))
            } else {
                // Other members of the entry, such as `env`, stay.
                for member in entry.members(for: target.client).members where member.name != "type" {
                    try editor.set(target.path + [member.name], to: member.value)
                }
            }
            return editor.bytes
        } catch {
            throw failure(error, showing: entry.snippet(for: target), hint)
        }
    }

    /// Returns the content without the entry; nil if there is none.
    ///
    /// - Throws: `CLIError` if that would lose a comment, or if the entry starts another program.
    func removing(from content: [UInt8]) throws(CLIError) -> [UInt8]? {
        do {
            if target.client.isTOML {
                var editor = try TOMLTextEditor(content)
                try refuseForeign(editor.members(of: target.path).map(JSON.object))
                return try editor.remove(target.path) ? editor.bytes : nil
            }
            guard !content.isEmpty else { return nil }
            var editor = try JSONTextEditor(content)
            try refuseForeign(editor.value(at: target.path))
            return try editor.remove(target.path) ? editor.bytes : nil
        } catch {
            throw failure(
                error,
                showing: [],
                "remove \(target.path.joined(separator: ".")) from \(target.file) by hand"
            )
        }
    }

    /// Throws for an entry of another program, which must not be changed.
    private func refuseForeign(_ entry: JSON?) throws(CLIError) {
        guard let entry, !ServerEntry.isOurs(entry) else { return }
        throw CLIError(
            status: .configuration,
            message: "\(target.file) has another server with the name \"\(target.name)\"; nothing was changed",
            hint: "choose another name with --name"
        )
    }

    private func failure(_ error: any Error, showing lines: [String], _ hint: String) -> CLIError {
        let file = target.file
        let reason: String
        switch error {
        case let error as CLIError: return error
        case JSONTextEditor.Failure.syntax(let error): reason = "\(file), line \(error.line): \(error.reason)"
        case JSONTextEditor.Failure.noObject(let path):
            reason = "\(file): \(path.isEmpty ? "the file" : path.joined(separator: ".")) is not an object"
        case JSONTextEditor.Failure.comment(let line), TOMLTextEditor.Failure.comment(let line):
            reason = "\(file): the change would remove the comment on line \(line)"
        case TOMLTextEditor.Failure.syntax(let error): reason = "\(file), line \(error.line): \(error.reason)"
        default: reason = "\(file): the layout of the file allows no safe change"
        }
        return CLIError(
            status: .configuration,
            message: "\(reason); nothing was changed",
            candidates: lines,
            hint: hint
        )
    }
}

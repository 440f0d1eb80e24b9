import Model

/// Adds a server to the content of a configuration file, or removes one.
struct ConfigurationEdit {
    let target: ConfigurationTarget

    /// Returns the content with the entry. Equal content means that the entry is there already.
    ///
    /// - Throws: `CLIError` if that would lose a part of the file.
    func adding(_ entry: ServerEntry, to content: [UInt8]) throws(CLIError) -> [UInt8] {
        do {
            if target.client.isTOML {
                var editor = try TOMLTextEditor(content)
                try refuseForeign(editor.members(of: target.path).map(JSON.object))
                try editor.set(target.path, entry.members(for: target.client))
                try verify(entry, in: editor.members(of: target.path).map(JSON.object))
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
            try verify(entry, in: editor.value(at: target.path))
            return editor.bytes
        } catch {
            throw failure(error, adding: entry)
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
        } catch ConfigurationEditFailure.parent {
            return nil
        } catch {
            throw failure(error, adding: nil)
        }
    }

    /// Throws unless the changed text, read again, has the members of the entry.
    private func verify(_ entry: ServerEntry, in written: JSON?) throws(CLIError) {
        let wanted = entry.members(for: target.client).members.filter { $0.name != "type" }
        guard wanted.allSatisfy({ written?[$0.name] == $0.value }) else {
            throw CLIError.configuration(
                "\(target.file): the layout of the file allows no safe change; nothing was changed",
                candidates: entry.snippet(for: target),
                try: "add these lines to \(target.file) below \(target.client.serversPath[0])"
            )
        }
    }

    /// Throws for an entry of another program, which must not be changed.
    private func refuseForeign(_ entry: JSON?) throws(CLIError) {
        guard let entry, !ServerEntry.isOurs(entry) else { return }
        throw CLIError.configuration(
            "\(target.file) has another server with the name \"\(target.name)\"; nothing was changed",
            try: "choose another name with --name"
        )
    }

    /// Returns an error with advice that keeps the file valid. The entry is nil for a removal.
    private func failure(_ error: any Error, adding entry: ServerEntry?) -> CLIError {
        let (file, path) = (target.file, target.path.joined(separator: "."))
        let byHand = entry == nil ? "remove \(path) from \(file) by hand" : "replace the entry \(path) in \(file)"
        let (reason, hint): (String, String)
        var lines: [String] = []
        switch error {
        case let error as CLIError: return error
        case ConfigurationEditFailure.syntax(let error):
            (reason, hint) = (", line \(error.line): \(error.reason)", "repair line \(error.line) of \(file) first")
        case ConfigurationEditFailure.noObject(let parent):
            let value = parent.isEmpty ? "the file" : parent.joined(separator: ".")
            (reason, hint) = (": \(value) is not an object", "replace \(value) in \(file) with an object first")
        case ConfigurationEditFailure.comment(let line):
            reason = ": the change would remove the comment on line \(line)"
            hint = entry == nil ? byHand : "\(byHand) with these lines"
            lines = entry?.snippet(for: target) ?? []
        case ConfigurationEditFailure.layout(let line):
            reason = ", line \(line): \(path) is not a table of its own"
            hint = "remove the entry on line \(line)" + (entry == nil ? " by hand" : ", and run the command again")
        case ConfigurationEditFailure.parent(let parent, let line):
            let name = parent.joined(separator: ".")
            reason = ", line \(line): \(name) is an inline table or an array"
            hint = "write \(name) on line \(line) as tables, such as [\(name).NAME], and run the command again"
        default: (reason, hint) = (": the layout of the file allows no safe change", byHand)
        }
        return CLIError.configuration("\(file)\(reason); nothing was changed", candidates: lines, try: hint)
    }
}

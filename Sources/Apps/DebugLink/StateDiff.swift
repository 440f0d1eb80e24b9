package import Model

/// The differences between two states of an app.
package struct StateDiff: Hashable, Sendable {
    /// A value that was changed, added or removed.
    package struct Change: Hashable, Sendable {
        package let pointer: JSONPointer
        /// The JSON text before the change, truncated if long; nil for an added value.
        package let before: String?
        /// The JSON text after the change, truncated if long; nil for a removed value.
        package let after: String?
    }

    /// The changes in the order of the members of the newer state.
    package private(set) var changes: [Change] = []
    /// The number of further changes beyond the limit.
    package private(set) var omittedChanges = 0

    private let changeLimit: Int
    private let valueLimit: Int

    /// Compares two states.
    ///
    /// - Parameters:
    ///   - before: The older state.
    ///   - after: The newer state.
    ///   - changeLimit: The maximum number of listed changes.
    ///   - valueLimit: The size in characters from which a value is truncated.
    package init(from before: JSON, to after: JSON, changeLimit: Int = 200, valueLimit: Int = 200) {
        self.changeLimit = changeLimit
        self.valueLimit = valueLimit
        compare(before, after, at: .root)
    }

    private mutating func compare(_ before: JSON, _ after: JSON, at pointer: JSONPointer) {
        switch (before, after) {
        case (.object(let before), .object(let after)): compare(before, after, at: pointer)
        case (.array(let before), .array(let after)): compare(before, after, at: pointer)
        default: if before != after { add(before, after, at: pointer) }
        }
    }

    private mutating func compare(_ before: JSONObject, _ after: JSONObject, at pointer: JSONPointer) {
        var removed = Dictionary(before.members.map { (Array($0.name.utf8), $0) }) { first, _ in first }
        for member in after.members {
            let pointer = pointer.appending(member.name)
            if let old = removed.removeValue(forKey: Array(member.name.utf8)) {
                compare(old.value, member.value, at: pointer)
            } else {
                add(nil, member.value, at: pointer)
            }
        }
        guard !removed.isEmpty else { return }
        for member in before.members where removed[Array(member.name.utf8)] != nil {
            add(member.value, nil, at: pointer.appending(member.name))
        }
    }

    private mutating func compare(_ before: [JSON], _ after: [JSON], at pointer: JSONPointer) {
        for index in 0..<max(before.count, after.count) {
            let pointer = pointer.appending(String(index))
            switch (index < before.count, index < after.count) {
            case (true, true): compare(before[index], after[index], at: pointer)
            case (true, false): add(before[index], nil, at: pointer)
            default: add(nil, after[index], at: pointer)
            }
        }
    }

    private mutating func add(_ before: JSON?, _ after: JSON?, at pointer: JSONPointer) {
        guard changes.count < changeLimit else {
            omittedChanges += 1
            return
        }
        changes.append(Change(pointer: pointer, before: before.map(shortened), after: after.map(shortened)))
    }

    private func shortened(_ value: JSON) -> String {
        let text = value.text
        return text.utf8.count <= valueLimit ? text : "\(text.prefix(valueLimit))…"
    }
}

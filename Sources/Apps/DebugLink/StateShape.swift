import Model

/// The outermost members of a state with their types.
///
/// Some apps end when they cannot decode a state. A state of the same shape can probably be decoded.
struct StateShape: Hashable, Sendable {
    private let type: String
    private var members: [String: String] = [:]

    init(of state: JSON) {
        type = Self.type(of: state)
        for member in state.object?.members ?? [] { members[member.name] = Self.type(of: member.value) }
    }

    /// Describes the first difference from the app's last state; nil if there is none.
    func difference(from last: StateShape) -> String? {
        guard type == last.type else { return "it is \(type), and the app's last state is \(last.type)" }
        for name in Set(members.keys).union(last.members.keys).sorted() where members[name] != last.members[name] {
            let pointer = JSONPointer.root.appending(name)
            switch (members[name], last.members[name]) {
            case (let type?, let last?): return "\"\(pointer)\" is \(type), and \(last) in the app's last state"
            case (_?, nil): return "\"\(pointer)\" is missing in the app's last state"
            default: return "\"\(pointer)\" is missing in it, and the app's last state has it"
            }
        }
        return nil
    }

    private static func type(of value: JSON) -> String {
        if case .bool = value { "true or false" } else { value.typeDescription }
    }
}

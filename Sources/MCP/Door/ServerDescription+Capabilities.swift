import JSON

extension ServerDescription {
    func has(_ family: String) -> Bool { capabilities[family] != nil }

    /// A switch inside a capability, `resources.subscribe` for one.
    func has(_ family: String, _ name: String) -> Bool { capabilities[family]?[name] == true }
}

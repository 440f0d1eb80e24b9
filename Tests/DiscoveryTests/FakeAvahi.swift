import Model

@testable import Discovery

/// Records the calls into Avahi instead of making them.
final class FakeAvahi: AvahiCalls {
    enum Call: Hashable {
        case browse(ServiceType)
        case records(AvahiObjectKey)
        case resolve(ServiceKey)
        case publish(name: String)
        case updateTXT(name: String)
        case withdraw(String)
        case free(AvahiObjectKey)
    }

    var fault: AvahiError?
    /// The codes that calls return instead of `AVAHI_OK`.
    var codes: [Call: CInt] = [:]
    private var calls: [Call] = []

    /// The calls since the last use of this function.
    func drainCalls() -> [Call] {
        defer { calls = [] }
        return calls
    }

    func browseServices(_ type: ServiceType) -> CInt { record(.browse(type)) }

    func browseRecords(
        _ objectKey: AvahiObjectKey,
        name: String,
        type: Int,
        interface: CInt,
        transport: CInt
    ) -> CInt { record(.records(objectKey)) }

    func resolve(_ key: ServiceKey, wantsAddress: Bool) -> CInt { record(.resolve(key)) }
    func publish(_ id: String, name: String, spec: AdvertisementSpec) -> CInt { record(.publish(name: name)) }
    func updateTXT(_ id: String, name: String, spec: AdvertisementSpec) -> CInt { record(.updateTXT(name: name)) }
    func withdraw(_ id: String) { _ = record(.withdraw(id)) }
    func free(_ objectKey: AvahiObjectKey) { _ = record(.free(objectKey)) }

    private func record(_ call: Call) -> CInt {
        calls.append(call)
        return codes[call] ?? 0
    }
}

import Model

/// The calls into libavahi-client that browsing and publishing consist of. `AvahiConnection` makes them.
///
/// Calls that return a code return `AVAHI_OK` or an error code. The engine queues the events that a call triggers.
protocol AvahiCalls: AnyObject {
    /// The first failure of the connection; nil while it works.
    var fault: AvahiError? { get }

    func browseServices(_ type: ServiceType) -> CInt
    func browseRecords(
        _ objectKey: AvahiObjectKey,
        name: String,
        type: Int,
        interface: CInt,
        transport: CInt
    ) -> CInt
    func resolve(_ key: ServiceKey, wantsAddress: Bool) -> CInt

    func publish(_ id: String, name: String, spec: AdvertisementSpec) -> CInt
    func updateTXT(_ id: String, name: String, spec: AdvertisementSpec) -> CInt
    func withdraw(_ id: String)

    func free(_ objectKey: AvahiObjectKey)
}

extension AvahiConnection: AvahiCalls {}

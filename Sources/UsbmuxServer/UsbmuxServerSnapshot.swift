/// What a request is answered from: how things are at one moment.
struct UsbmuxServerSnapshot: Hashable, Sendable {
    var phones = DeviceIDAllocator()
    /// Who listens, by the number of the client.
    var listeners: [UInt32: ListenerInfo] = [:]
}

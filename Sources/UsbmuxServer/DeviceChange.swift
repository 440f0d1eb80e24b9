/// What happened at the cable, for whoever listens.
enum DeviceChange: Hashable, Sendable {
    case attached(NumberedDevice)
    case detached(NumberedDevice)
}

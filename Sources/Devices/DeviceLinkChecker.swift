import SystemIO

/// Testifies about the streams to one phone, under one of its DeviceIDs.
struct DeviceLinkChecker: LinkChecker {
    let deviceID: UInt32
    let rollCall: DevicePresenceChecker

    func ask(_ answer: @escaping @Sendable (_ isWayThere: Bool) -> Void) { rollCall.ask(about: deviceID, answer) }
}

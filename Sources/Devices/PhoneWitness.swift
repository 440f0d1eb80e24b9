import Sockets

/// Testifies about the streams to one phone, under one of its DeviceIDs.
struct PhoneWitness: CarrierWitness {
    let deviceID: UInt32
    let rollCall: RollCall

    func ask(_ answer: @escaping @Sendable (_ isWayThere: Bool) -> Void) { rollCall.ask(about: deviceID, answer) }
}

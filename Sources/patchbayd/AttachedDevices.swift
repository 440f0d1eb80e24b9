import API
import Devices
import Model

/// The phones that are attached, and a feed of the list for the doors.
actor AttachedDevices: DeviceDesk {
    private var list: [Device] = []
    private let followers = Broadcast<[Device]>(slow: .keepsNewest(1))

    func devices() -> [Device] { list }

    func deviceLists() -> AsyncStream<[Device]> { followers.subscribe(startingWith: list) }

    func set(_ devices: [Device]) {
        guard devices != list else { return }
        list = devices
        followers.send(devices)
    }

    func finish() {
        followers.finish()
    }
}

import Model
import Registry

/// The phones of this host, which a test sets.
actor FakeDevices: DeviceListing {
    private var list: [Device] = []
    private let subscribers = Broadcast<[Device]>(slow: .keepsNewest(1))

    func devices() -> [Device] { list }

    func deviceLists() -> AsyncStream<[Device]> { subscribers.subscribe(startingWith: list) }

    func set(_ devices: [Device]) {
        list = devices
        subscribers.send(devices)
    }
}

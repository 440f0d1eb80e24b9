import API
import Devices
import Model

/// The phones that are attached, and a feed of the list for the doors.
actor PhoneList: DeviceDesk {
    private var list: [Device] = []
    private var followers: [AsyncStream<[Device]>.Continuation] = []

    func devices() -> [Device] { list }

    func deviceLists() -> AsyncStream<[Device]> {
        let (stream, continuation) = AsyncStream.makeStream(of: [Device].self, bufferingPolicy: .bufferingNewest(1))
        continuation.yield(list)
        followers.append(continuation)
        return stream
    }

    func set(_ devices: [Device]) {
        guard devices != list else { return }
        list = devices
        followers.removeAll { follower in
            if case .terminated = follower.yield(devices) { return true }
            return false
        }
    }

    func finish() {
        for follower in followers { follower.finish() }
        followers = []
    }
}

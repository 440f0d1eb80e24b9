import Glibc

/// Lets so many tests at a time start programs, in the order in which they came.
///
/// Swift Testing starts every test at once; a hundred daemons on two cores would only prove that deadlines pass.
actor Turnstile {
    static let shared = Turnstile(places: max(4, 2 * sysconf(CInt(_SC_NPROCESSORS_ONLN))))

    private var places: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(places: Int) { self.places = places }

    func enter() async {
        guard places == 0 else {
            places -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    /// Hands the place to whoever waits longest.
    func leave() {
        if waiting.isEmpty {
            places += 1
        } else {
            waiting.removeFirst().resume()
        }
    }
}

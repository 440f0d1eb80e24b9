import Hummingbird
import Logging

/// What belongs to one request beside the request: above all, who makes it.
struct CallContext: RequestContext {
    /// What the kernel says about the other end of a connection.
    struct Source: RequestContextSource {
        let application: ApplicationRequestContextSource
        /// The user whose process connected; nil where nobody says.
        let caller: UInt32?

        var logger: Logger { application.logger }
    }

    var coreContext: CoreRequestContextStorage
    let caller: UInt32?
    let aftermath = Aftermath()

    init(source: Source) {
        coreContext = CoreRequestContextStorage(source: source.application)
        caller = source.caller
    }
}

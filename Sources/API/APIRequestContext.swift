import Hummingbird
import Logging
import NIOCore

/// What belongs to one request beside the request: above all, who makes it.
struct APIRequestContext: RequestContext {
    /// What is known before the routes are asked.
    struct Source: RequestContextSource {
        let application: ApplicationRequestContextSource
        let channel: any Channel
        let visitor: Principal
        let aftermath: RequestCleanup
        let late: DeferredResponse
        let departures: DisconnectHandler
        let delivery: PendingResponse

        var logger: Logger { application.logger }
    }

    var coreContext: CoreRequestContextStorage
    /// The connection that it came through.
    let channel: any Channel
    let visitor: Principal
    let aftermath: RequestCleanup
    let late: DeferredResponse
    let departures: DisconnectHandler
    let delivery: PendingResponse

    init(source: Source) {
        coreContext = CoreRequestContextStorage(source: source.application)
        channel = source.channel
        visitor = source.visitor
        aftermath = source.aftermath
        late = source.late
        departures = source.departures
        delivery = source.delivery
    }
}

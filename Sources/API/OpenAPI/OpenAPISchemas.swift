/// The documents of the API as JSON Schemas (draft 2020-12), the schema language of OpenAPI 3.1.
enum OpenAPISchemas {
    static let text =
        "{\(access),\(MCPSchemas.text),\(TeamSchemas.text),\(DashboardSchemas.text),\(ActivitySchemas.text),"
        + "\(ReverseTunnelSchemas.text),\(PhoneLogSchemas.text),\(core)}"

    private static let core = #"""
        "Health":{"type":"object","required":["status","version","degraded"],
          "properties":{"status":{"enum":["ok","degraded"]},"version":{"type":"string"},"detail":{"type":"string"},
            "degraded":{"description":"the parts that do not work, or work only in part","type":"array","items":{"enum":
              ["bonjour","usbmuxd","adb","debuglink","usbmux-server","list","team","api","access","state","remote"]}}}},
        "OpenAPI":{"type":"object"},
        "Date":{"type":"string","format":"date-time"},
        "EndpointID":{"type":"string","pattern":"^[a-z0-9-]{1,40}(\\.[a-z0-9][a-z0-9-]{0,31})?$",
          "description":"ID, or ID.HOST for an endpoint of another host of the team"},
        "HostName":{"type":"string","pattern":"^[a-z0-9][a-z0-9-]{0,31}$"},
        "HostStatus":{"description":"a host of the team","type":"object","required":["name"],"properties":{
          "name":{"$ref":"#/components/schemas/HostName"},
          "staleSince":{"description":"the team's registry is unreachable since then, so the entries of the host may be outdated",
            "$ref":"#/components/schemas/Date"}}},
        "UDID":{"type":"string","pattern":"^([0-9A-F]{8}-[0-9A-F]{16}|[0-9a-f]{40}|android-[A-Za-z0-9._-]{1,91})$"},
        "Port":{"type":"integer","minimum":0,"maximum":65535},
        "AbstractSocketName":{"type":"string","description":"an abstract unix socket of an Android phone, as after localabstract:",
          "pattern":"^[A-Za-z0-9._/-]{1,107}$"},
        "ServiceType":{"type":"string","pattern":"^_[a-z0-9-][a-z0-9_-]+\\._(tcp|udp)$"},
        "ListenAddress":{"type":"string","description":"tcp:PORT, tcp:HOST:PORT or unix:/path",
          "pattern":"^(tcp:|unix:/)"},
        "TXTRecord":{"type":"array","items":{"type":"object","required":["key"],"additionalProperties":false,"properties":{
          "key":{"type":"string"},"value":{"type":"string"},"base64":{"type":"string"}}}},
        "EndpointRoute":{"oneOf":[
          {"type":"object","required":["via","address","port","interfaceIndex","approval"],"properties":{
            "via":{"const":"network"},"address":{"type":"string"},"port":{"$ref":"#/components/schemas/Port"},
            "interface":{"type":"string"},"interfaceIndex":{"type":"integer"},
            "host":{"type":"string","description":"the host that announced the route; absent for a static endpoint"},
            "inbound":{"const":true,"description":"the app connected to Patchbay; absent for a route that is dialled"},
            "registration":{"type":"string","description":"the ID of the registration that named the route"},
            "app":{"type":"string"},"appIsBundleID":{"const":true},"launchID":{"type":"string"},
            "approval":{"enum":["pending","approved","changed","denied"]},"secretHeld":{"const":true},
            "mismatch":{"type":"string","description":"the app that answered instead of `app`"}}},
          {"type":"object","required":["via","udid","approval"],"oneOf":[{"required":["port"]},{"required":["abstractSocket"]}],"properties":{
            "via":{"const":"usb"},"udid":{"$ref":"#/components/schemas/UDID"},
            "port":{"$ref":"#/components/schemas/Port"},"abstractSocket":{"$ref":"#/components/schemas/AbstractSocketName"},
            "app":{"type":"string"},"appIsBundleID":{"const":true},"launchID":{"type":"string"},
            "approval":{"enum":["pending","approved","changed","denied"]},"secretHeld":{"const":true},
            "mismatch":{"type":"string","description":"the app that answered instead of `app`"}}}]},
        "Endpoint":{"type":"object",
          "required":["id","kind","app","name","location","state","approval","routes","txt","sources","firstSeenAt"],
          "properties":{
            "id":{"$ref":"#/components/schemas/EndpointID"},"kind":{"type":"string"},"app":{"type":"string"},
            "name":{"type":"string"},"version":{"type":"string"},"launchID":{"type":"string"},"server":{"type":"string"},"reason":{"type":"string"},
            "location":{"type":"object","properties":{
              "udid":{"$ref":"#/components/schemas/UDID"},
              "deviceName":{"type":"string","description":"the name that the phone reports over the cable"},
              "host":{"type":"string"}}},
            "state":{"enum":["online","suspect","offline","blocked"]},
            "approval":{"enum":["pending","approved","changed","denied"]},
            "routes":{"type":"array","items":{"$ref":"#/components/schemas/EndpointRoute"}},
            "txt":{"$ref":"#/components/schemas/TXTRecord"},"txtTruncated":{"const":true},
            "formerIDs":{"type":"array","description":"IDs of endpoints that turned out to be this one; requests accept them",
              "items":{"$ref":"#/components/schemas/EndpointID"}},
            "possiblySameAs":{"type":"array","description":"endpoints that may be the same app on another route; a hint",
              "items":{"$ref":"#/components/schemas/EndpointID"}},
            "sameLaunchAs":{"$ref":"#/components/schemas/EndpointID"},
            "combinedWith":{"type":"array","items":{"$ref":"#/components/schemas/Endpoint"},
              "description":"endpoints that reach the same launch; lists show their routes here, each used with its own ID"},
            "sources":{"type":"array","items":{"enum":["bonjour","usbmuxd","adb","config","debuglink","registration"]}},
            "registered":{"const":true,"description":"the app registered itself and chose its own names"},
            "capabilities":{"type":"array","items":{"type":"string"},
              "description":"from the profile of the kind, or the names of the MCP server's capabilities"},
            "limits":{"type":"array","items":{"type":"string"}},
            "deviations":{"type":"array","description":"what Patchbay repaired in the server's messages since the app's launch",
              "items":{"type":"object","required":["text","count"],"properties":{
                "text":{"type":"string","description":"ends a sentence that begins with: this server"},
                "count":{"type":"integer"}}}},
            "host":{"$ref":"#/components/schemas/HostStatus"},
            "hostRoutes":{"type":"array","description":"the routes of the other host's broker, which this broker cannot dial",
              "items":{"$ref":"#/components/schemas/EndpointRoute"}},
            "lease":{"$ref":"#/components/schemas/Lease"},
            "firstSeenAt":{"$ref":"#/components/schemas/Date"},"lastSeenAt":{"$ref":"#/components/schemas/Date"}}},
        "RegistrationSpec":{"type":"object","required":["app","port","protocol"],"additionalProperties":false,"properties":{
          "app":{"type":"string","description":"the bundle identifier"},"version":{"type":"string"},
          "port":{"type":"integer","minimum":1024,"maximum":65535},
          "protocol":{"type":"string","description":"appreveal, mcp, the name of a profile, or another kind of endpoint"},
          "capabilities":{"type":"array","maxItems":32,"items":{"type":"string"}},
          "launchID":{"type":"string","description":"new at each launch"},
          "device":{"type":"string","description":"the name of the device; default: the name of the grant"},
          "secret":{"type":"string","description":"the app's session token: 1 to 4096 characters of printable ASCII"}}},
        "Registration":{"type":"object","required":["id","endpoint","heartbeatSeconds"],"properties":{
          "id":{"type":"string"},"endpoint":{"$ref":"#/components/schemas/EndpointID"},
          "heartbeatSeconds":{"type":"integer","description":"the interval of PUT /v1/registrations/{id}"}}},
        "NearbyBroker":{"type":"object","required":["id","name","addresses","port","pair"],"properties":{
          "id":{"type":"string","description":"the first 16 characters of the pin that the broker claims; may be empty"},
          "name":{"type":"string"},"host":{"type":"string"},
          "addresses":{"type":"array","items":{"type":"string"}},"port":{"$ref":"#/components/schemas/Port"},
          "pair":{"enum":["open","closed"],"description":"open if the broker has an invite for other machines"}}},
        "NearbyBrokerList":{"type":"object","required":["schema","brokers"],"properties":{
          "schema":{"const":1},"brokers":{"type":"array","items":{"$ref":"#/components/schemas/NearbyBroker"}}}},
        "Lease":{"type":"object","required":["id","endpoint","holder","own","seconds","createdAt"],"properties":{
          "id":{"type":"string"},"endpoint":{"$ref":"#/components/schemas/EndpointID"},
          "device":{"$ref":"#/components/schemas/UDID"},
          "holder":{"type":"string","description":"the name of a grant, or the user of a process"},
          "own":{"type":"boolean","description":"true for a lease of the caller"},"note":{"type":"string"},
          "seconds":{"type":"integer","description":"a call of the holder extends the lease to this length again"},
          "createdAt":{"$ref":"#/components/schemas/Date"},"expiresAt":{"$ref":"#/components/schemas/Date"},
          "waiting":{"type":"integer","description":"the number of clients that wait for the lease"}},
          "description":"expiresAt and waiting are absent for a lease that another host granted"},
        "LeaseSpec":{"type":"object","required":["endpoint"],"additionalProperties":false,"properties":{
          "endpoint":{"$ref":"#/components/schemas/EndpointID"},
          "seconds":{"type":"integer","minimum":1,"maximum":28800,"description":"default 600"},
          "waitSeconds":{"type":"integer","minimum":0,"maximum":3600,
            "description":"the time to wait while another client has the lease; default 0"},
          "note":{"type":"string","description":"the reason, which other clients see"},
          "renew":{"type":"string","description":"the ID of a lease; the answer is 404 if it has ended"}}},
        "LeaseList":{"type":"object","required":["schema","leases"],"properties":{
          "schema":{"const":1},"leases":{"type":"array","items":{"$ref":"#/components/schemas/Lease"}}}},
        "EndpointList":{"type":"object","required":["schema","revision","endpoints"],"properties":{
          "schema":{"const":1},"revision":{"type":"integer"},
          "endpoints":{"type":"array","items":{"$ref":"#/components/schemas/Endpoint"}}}},
        "DartVMService":{"type":"object","required":["schema","http","webSocket"],"properties":{
          "schema":{"const":1},
          "http":{"type":"string","description":"a secret, for flutter attach --debug-url and dart devtools"},
          "webSocket":{"type":"string","description":"a secret, for clients of the VM service protocol"},
          "authCode":{"type":"string","description":"a secret; absent if none is stored for this launch"}}},
        "WebPages":{"type":"object","required":["schema","pages"],"properties":{
          "schema":{"const":1},
          "http":{"type":"string","description":"the address for tools, of the caller's tunnel if there is one; absent without an address"},
          "omittedCount":{"type":"integer","description":"pages beyond the limit, and damaged entries; absent if there are none"},
          "pages":{"type":"array","items":{"type":"object","required":["type","title","url"],"properties":{
            "type":{"type":"string"},"title":{"type":"string"},"url":{"type":"string"},
            "webSocketDebuggerUrl":{"type":"string","description":"at the address in http; absent for a page that cannot be attached to"}}}}}},
        "StaticEndpoint":{"type":"object","required":["name","kind","address","port"],"additionalProperties":false,"properties":{
          "name":{"type":"string"},"kind":{"type":"string"},"address":{"type":"string"},
          "port":{"$ref":"#/components/schemas/Port"},"app":{"type":"string"},
          "path":{"type":"string","description":"the path of an MCP server; default: /mcp and then /"}}},
        "Device":{"type":"object","required":["udid","platform","transport","attachedAt"],"properties":{
          "udid":{"$ref":"#/components/schemas/UDID"},"platform":{"enum":["ios","android"]},
          "transport":{"enum":["usb","network"]},
          "state":{"enum":["locked","unauthorized","connecting","offline","no-permissions","unavailable"],
            "description":"why apps on the phone cannot be reached; absent if they can"},
          "hint":{"type":"string","description":"what a person does about the state"},
          "productID":{"type":"integer"},"locationID":{"type":"integer"},
          "name":{"type":"string","description":"as the phone reports it; absent until then"},
          "productType":{"type":"string"},"productVersion":{"type":"string"},
          "paired":{"type":"boolean","description":"of an iPhone: usbmuxd has its pair record; ports need none"},
          "label":{"type":"string"},"note":{"type":"string","description":"an owner's note of the phone"},
          "routes":{"type":"array","description":"in a team: every host with the phone, the best one first",
            "items":{"type":"object","required":["host","transport"],"properties":{
              "host":{"$ref":"#/components/schemas/HostStatus"},"transport":{"enum":["usb","network"]}}}},
          "attachedAt":{"$ref":"#/components/schemas/Date"}}},
        "DeviceList":{"type":"object","required":["schema","devices"],"properties":{
          "schema":{"const":1},"devices":{"type":"array","items":{"$ref":"#/components/schemas/Device"}}}},
        "Profile":{"type":"object","required":["name","title","ports","file","toolCount"],"properties":{
          "name":{"type":"string","description":"the kind of the endpoints"},"title":{"type":"string"},
          "ports":{"type":"array","items":{"$ref":"#/components/schemas/Port"}},
          "file":{"type":"string"},"toolCount":{"type":"integer"}}},
        "Configuration":{"type":"object","required":["schema","configuration"],"properties":{
          "schema":{"const":1},"configuration":{"type":"array","items":{"type":"object","required":["key","source"],
            "properties":{"key":{"type":"string"},"value":{"type":"string","description":"the effective value as TOML"},
              "source":{"enum":["default","file","option","environment"]},
              "place":{"type":"string","description":"FILE:LINE, the option or the variable"},
              "pending":{"type":"string","description":"the value that applies after a restart"}}}}}},
        "ProfileList":{"type":"object","required":["schema","profiles"],"properties":{
          "schema":{"const":1},"profiles":{"type":"array","items":{"$ref":"#/components/schemas/Profile"}}}},
        "ProfileCheckSpec":{"type":"object","required":["file","text"],"additionalProperties":false,"properties":{
          "file":{"type":"string","description":"the name of the file for error messages"},
          "text":{"type":"string","description":"the content of the file"},
          "target":{"$ref":"#/components/schemas/TunnelTarget"}}},
        "ProfileCheck":{"type":"object","required":["profile","steps","tools"],"properties":{
          "profile":{"$ref":"#/components/schemas/Profile"},
          "steps":{"type":"array","items":{"type":"object","required":["request"],"properties":{
            "request":{"type":"string"},"status":{"type":"integer"},
            "mismatch":{"type":"string","description":"the unmet condition; absent if all were met"}}}},
          "server":{"type":"object","description":"the recognised server; absent after a mismatch","properties":{
            "app":{"type":"string"},"version":{"type":"string"},"launchID":{"type":"string"}}},
          "tools":{"type":"array","items":{"type":"object","required":["name","outcome"],"properties":{
            "name":{"type":"string"},"outcome":{"enum":["answered","failed","skipped"]},
            "status":{"type":"integer"},"reason":{"type":"string"}}}}}},
        "TunnelTarget":{"oneOf":[
          {"type":"object","required":["device"],"additionalProperties":false,"properties":{"device":{"oneOf":[
            {"type":"object","required":["udid","port"],"additionalProperties":false,"properties":{
              "udid":{"$ref":"#/components/schemas/UDID"},"port":{"$ref":"#/components/schemas/Port"}}},
            {"type":"object","required":["udid","abstractSocket"],"additionalProperties":false,"properties":{
              "udid":{"$ref":"#/components/schemas/UDID"},"abstractSocket":{"$ref":"#/components/schemas/AbstractSocketName"}}}]}}},
          {"type":"object","required":["endpoint"],"additionalProperties":false,"properties":{"endpoint":{
            "$ref":"#/components/schemas/EndpointID"}}}]},
        "TunnelSpec":{"type":"object","required":["local","target","noRebind","persistent"],"additionalProperties":false,"properties":{
          "local":{"$ref":"#/components/schemas/ListenAddress"},"target":{"$ref":"#/components/schemas/TunnelTarget"},
          "noRebind":{"type":"boolean"},"persistent":{"type":"boolean"},"allowAnyUser":{"type":"boolean"},
          "allowBrowsers":{"type":"boolean"}}},
        "TunnelSpecs":{"type":"array","items":{"$ref":"#/components/schemas/TunnelSpec"}},
        "TunnelStatistics":{"type":"object","required":["bytesUp","bytesDown","connections","open","failures"],
          "properties":{"bytesUp":{"type":"integer"},"bytesDown":{"type":"integer"},
            "bytesPerSecondUp":{"type":"integer"},"bytesPerSecondDown":{"type":"integer"},
            "connections":{"type":"integer"},"open":{"type":"integer"},
            "failures":{"type":"object","additionalProperties":{"type":"integer"}},
            "lastConnectMilliseconds":{"type":"number"},"lastConnectedAt":{"$ref":"#/components/schemas/Date"}}},
        "TunnelState":{"type":"object","required":["name"],"properties":{
          "name":{"enum":["waiting","active","failed"]},"reason":{"type":"string"}}},
        "Tunnel":{"type":"object","required":["id","spec","owner","state","listenAddresses","statistics","createdAt"],"properties":{
          "id":{"type":"string"},"spec":{"$ref":"#/components/schemas/TunnelSpec"},
          "owner":{"type":"integer","description":"the user whose processes may connect"},
          "state":{"$ref":"#/components/schemas/TunnelState"},
          "listenAddresses":{"type":"array","items":{"$ref":"#/components/schemas/ListenAddress"}},
          "statistics":{"$ref":"#/components/schemas/TunnelStatistics"},
          "createdAt":{"$ref":"#/components/schemas/Date"},
          "replaced":{"type":"string","description":"the ID of the tunnel that this one replaced; only in the response that creates the tunnel"}}},
        "TunnelList":{"type":"object","required":["schema","tunnels"],"properties":{
          "schema":{"const":1},"tunnels":{"type":"array","items":{"$ref":"#/components/schemas/Tunnel"}}}},
        "DeleteResponse":{"type":"object","required":["deletedCount"],"properties":{"deletedCount":{"type":"integer"}}},
        "AdvertisementSpec":{"type":"object","required":["name","type","port","txt"],"additionalProperties":false,"properties":{
          "name":{"type":"string"},"type":{"$ref":"#/components/schemas/ServiceType"},
          "port":{"$ref":"#/components/schemas/Port"},"txt":{"$ref":"#/components/schemas/TXTRecord"},
          "local":{"type":"boolean","description":"true: published on the loopback interface only"}}},
        "AdvertisementUpdate":{"type":"object","required":["txt"],"additionalProperties":false,"properties":{
          "txt":{"$ref":"#/components/schemas/TXTRecord"}}},
        "Advertisement":{"type":"object","required":["id","spec","state","publishedName"],"properties":{
          "id":{"type":"string"},"spec":{"$ref":"#/components/schemas/AdvertisementSpec"},
          "state":{"enum":["waiting","registering","published","failed"]},"reason":{"type":"string"},
          "publishedName":{"type":"string"}}},
        "AdvertisementList":{"type":"object","required":["schema","advertisements"],"properties":{
          "schema":{"const":1},
          "advertisements":{"type":"array","items":{"$ref":"#/components/schemas/Advertisement"}}}},
        "SourceStatus":{"type":"object","required":["name","state","detail"],"properties":{
          "name":{"type":"string"},"state":{"enum":["ok","starting","missing","off"]},
          "detail":{"type":"string"},"hint":{"type":"string"}}},
        "BrokerStatus":{"type":"object",
          "required":["version","startedAt","revision","endpoints","devices","tunnels","sources"],"properties":{
            "version":{"type":"string"},"pid":{"type":"integer"},"startedAt":{"$ref":"#/components/schemas/Date"},
            "revision":{"type":"integer"},"endpoints":{"type":"object","additionalProperties":{"type":"integer"}},
            "devices":{"type":"integer"},"tunnels":{"type":"integer"},"streams":{"type":"integer"},
            "leases":{"type":"integer"},
            "sources":{"type":"array","items":{"$ref":"#/components/schemas/SourceStatus"}},
            "findings":{"type":"array","items":{"type":"string"}},"storage":{"type":"array","items":{"type":"string"}},"allowAnyUser":{"type":"boolean"},
            "remote":{"$ref":"#/components/schemas/RemoteStatus"},
            "host":{"$ref":"#/components/schemas/HostName"},
            "hosts":{"type":"array","items":{"$ref":"#/components/schemas/HostStatus"},
              "description":"the other hosts of the team"}}},
        "RemoteStatus":{"type":"object",
          "required":["state","configured","reachable","connections","refusedHandshakes"],"properties":{
            "state":{"enum":["off","listening","waiting"]},"address":{"type":"string"},"configured":{"type":"boolean"},
            "pin":{"$ref":"#/components/schemas/KeyPin"},"reachable":{"type":"array","items":{"type":"string"}},
            "connections":{"type":"integer"},"refusedHandshakes":{"type":"integer"},"problem":{"type":"string"},
            "certificates":{"$ref":"#/components/schemas/RemoteCertificates"}}},
        "RemoteCertificates":{"type":"object","required":["names","expiresAt","authority"],"properties":{
          "names":{"type":"array","items":{"type":"string"}},"expiresAt":{"$ref":"#/components/schemas/Date"},
          "authority":{"type":"string","description":"what clients without a pin can trust, as PEM"},
          "configured":{"type":"object","description":"the owner's own certificate","required":["names","expiresAt"],"properties":{
            "names":{"type":"array","items":{"type":"string"}},"expiresAt":{"$ref":"#/components/schemas/Date"}}},
          "problem":{"type":"string"}}},
        "RemoteSpec":{"type":"object","required":["enabled"],"additionalProperties":false,"properties":{"enabled":{"type":"boolean"},
          "address":{"type":"string","description":"a numeric address with its port; 0.0.0.0:7283 by default"}}},
        "Problem":{"type":"object","required":["type","title","status","detail","code"],"properties":{
          "type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},
          "detail":{"type":"string"},"code":{"type":"string"},"hint":{"type":"string"},
          "reason":{"type":"string","description":"why a target could not be dialed"},
          "error":{"type":"string","description":"on /register and /.well-known/* only, where OAuth clients look for it"},
          "error_description":{"type":"string","description":"detail and hint, beside error"}}}
        """#
}

extension OpenAPISchemas {
    /// The schemas of access control, without the enclosing braces.
    static let access = #"""
        "Scope":{"enum":["registry.read","endpoint.call","endpoint.register","tunnel.open","secret.use","secret.read","shell","invite.create","admin"]},
        "Selector":{"oneOf":[{"const":"all"},
          {"type":"object","required":["endpoints"],"additionalProperties":false,"properties":{
            "endpoints":{"type":"array","items":{"$ref":"#/components/schemas/EndpointID"}}}},
          {"type":"object","required":["bundles"],"additionalProperties":false,"properties":{
            "bundles":{"type":"array","items":{"type":"string"}}}},
          {"type":"object","required":["hosts"],"additionalProperties":false,"properties":{
            "hosts":{"type":"array","items":{"type":"string","pattern":"^[a-z0-9][a-z0-9-]{0,31}$"}}}}]},
        "Permissions":{"type":"object","required":["scopes","selector"],"additionalProperties":false,"properties":{
          "scopes":{"type":"array","items":{"$ref":"#/components/schemas/Scope"}},
          "selector":{"$ref":"#/components/schemas/Selector"},"tools":{"$ref":"#/components/schemas/ToolFilter"}}},
        "ToolFilter":{"description":"the tools that endpoint.call includes; default: all","oneOf":[{"enum":["all","read-only"]},
          {"type":"object","required":["named"],"additionalProperties":false,"properties":{
            "named":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"string"}}}}]},
        "Binding":{"description":"the client that may use the grant: the holder of its token, of any user or of one user; the holder of a TLS key; or every client of a unix socket","oneOf":[{"const":"bearer"},
          {"type":"object","required":["user"],"properties":{"user":{"type":"integer"}}},
          {"type":"object","required":["key"],"properties":{"key":{"$ref":"#/components/schemas/KeyPin"}}},
          {"type":"object","required":["dashboard"],"properties":{
            "dashboard":{"type":"integer","description":"the user of the session of an owner's browser"}}},
          {"type":"object","required":["socket"],"properties":{"socket":{"type":"string"}}}]},
        "KeyPin":{"type":"string","pattern":"^[A-Z2-7]{52}$",
          "description":"SHA-256 of a SubjectPublicKeyInfo, in base32"},
        "AuditActor":{"oneOf":[{"enum":["anonymous","broker"]},
          {"type":"object","required":["grant"],"properties":{"grant":{"type":"string"},
            "uid":{"type":"integer","description":"the user, if the grant is the session of an owner's browser"}}},
          {"type":"object","required":["host","client"],"properties":{"host":{"type":"string"},"client":{"type":"string"}}},
          {"type":"object","required":["uid","pid","exe"],"properties":{
            "uid":{"type":"integer"},"pid":{"type":"integer"},"exe":{"type":"string"}}}]},
        "InviteToken":{"type":"string","description":"a secret","pattern":"^pbi_[0-9A-Za-z]{8}_[0-9A-Za-z]{22}_[0-9A-Za-z]{6}$"},
        "GrantToken":{"type":"string","description":"a secret, for Authorization: Bearer",
          "pattern":"^pbg_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$"},
        "InviteUse":{"description":"the clients that may redeem the invite: those of this machine; also those of other machines with a TLS key; also those with a token; or apps, which register themselves with a token",
          "enum":["local","remote","bearer","device"]},
        "InviteSpec":{"type":"object","required":["permissions"],"additionalProperties":false,"properties":{
          "permissions":{"$ref":"#/components/schemas/Permissions"},"use":{"$ref":"#/components/schemas/InviteUse"},
          "host":{"type":"string","description":"the broker's address in the pairing string, for other machines"},
          "maxUses":{"type":"integer"},
          "lifetimeSeconds":{"type":"integer"},
          "grantLifetimeSeconds":{"type":"integer"},
          "grantIdleSeconds":{"type":"integer"},"user":{"type":"integer"},
          "qr":{"type":"boolean","description":"true to get the pairing string as a QR code, too"}}},
        "Invite":{"type":"object",
          "required":["id","permissions","maxUses","useCount","failedAttempts","createdBy","createdAt","expiresAt"],"properties":{
            "id":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"},
            "use":{"$ref":"#/components/schemas/InviteUse"},"maxUses":{"type":"integer"},"useCount":{"type":"integer"},"failedAttempts":{"type":"integer"},
            "createdBy":{"$ref":"#/components/schemas/AuditActor"},"createdAt":{"$ref":"#/components/schemas/Date"},
            "expiresAt":{"$ref":"#/components/schemas/Date"},"endReason":{"enum":["spent","expired","revoked","burnt"]}}},
        "IssuedInvite":{"type":"object","required":["invite","token"],"properties":{
          "invite":{"$ref":"#/components/schemas/Invite"},"token":{"$ref":"#/components/schemas/InviteToken"},
          "pairing":{"type":"string","description":"PATCHBAY:1:HOST:PORT:PIN:TOKEN, a secret"},
          "addresses":{"type":"array","items":{"type":"string"},"description":"where other machines may reach the broker"},
          "qr":{"description":"the pairing string as a QR code, also a secret; returned only once and not stored","oneOf":[
            {"type":"string","contentMediaType":"image/svg+xml"},
            {"type":"array","description":"rows of modules, 1 for a dark one","items":{"type":"string","pattern":"^[01]+$"}}]}}},
        "InviteList":{"type":"object","required":["schema","invites"],"properties":{
          "schema":{"const":1},"invites":{"type":"array","items":{"$ref":"#/components/schemas/Invite"}}}},
        "RedemptionSpec":{"type":"object","required":["token","client","name"],"additionalProperties":false,"properties":{
          "token":{"$ref":"#/components/schemas/InviteToken"},
          "client":{"type":"string","description":"16 to 1,024 bytes that only the client knows; use 32 random letters and digits"},
          "name":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"}}},
        "Grant":{"type":"object",
          "required":["id","name","permissions","binding","createdAt","expiresAt","lastUsedAt","idleSeconds"],"properties":{
            "id":{"type":"string"},"name":{"type":"string"},
            "permissions":{"$ref":"#/components/schemas/Permissions"},
            "binding":{"$ref":"#/components/schemas/Binding"},"parent":{"type":"string"},
            "remote":{"const":true,"description":"valid at the remote listener, too"},
            "invite":{"type":"string"},"createdAt":{"$ref":"#/components/schemas/Date"},
            "expiresAt":{"$ref":"#/components/schemas/Date"},"lastUsedAt":{"$ref":"#/components/schemas/Date"},
            "idleSeconds":{"type":"integer"},"resource":{"type":"string","description":"the only MCP server, of a client of OAuth"},
            "endReason":{"enum":["expired","idle","revoked"]}}},
        "SocketGrantSpec":{"type":"object","required":["path","name","permissions"],"additionalProperties":false,"properties":{
          "path":{"type":"string","description":"the absolute path of the socket that the broker creates"},
          "name":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"},
          "lifetimeSeconds":{"type":"integer"},"idleSeconds":{"type":"integer"}}},
        "IssuedGrant":{"type":"object","required":["grant"],"properties":{
          "grant":{"$ref":"#/components/schemas/Grant"},"token":{"$ref":"#/components/schemas/GrantToken"}}},
        "GrantList":{"type":"object","required":["schema","grants"],"properties":{
          "schema":{"const":1},"grants":{"type":"array","items":{"$ref":"#/components/schemas/Grant"}}}},
        "RevocationResult":{"type":"object","required":["ended"],"properties":{
          "ended":{"type":"array","items":{"type":"string"}}}},
        "AccessRequestSpec":{"type":"object","required":["name","permissions"],"additionalProperties":false,"properties":{
          "name":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"},
          "bearer":{"type":"boolean"},"lifetimeSeconds":{"type":"integer"}}},
        "AccessRequest":{"type":"object","required":["userCode","requester","name","permissions","expiresAt"],"properties":{
          "userCode":{"type":"string","pattern":"^[A-Z]{4}-[A-Z]{4}$"},"requester":{"$ref":"#/components/schemas/AuditActor"},
          "name":{"type":"string"},"permissions":{"$ref":"#/components/schemas/Permissions"},
          "expiresAt":{"$ref":"#/components/schemas/Date"},"authorization":{"type":"object",
            "description":"of a client of OAuth","required":["asker","origin","resource"],"properties":{
              "asker":{"type":"string"},"origin":{"type":"string"},"host":{"type":"string"},"resource":{"type":"string"}}}}},
        "AccessRequestLimits":{"type":"object","description":"the part to approve; default: what the request asks for",
          "additionalProperties":false,"properties":{"scopes":{"type":"array","items":{"$ref":"#/components/schemas/Scope"}},
            "selector":{"$ref":"#/components/schemas/Selector"},"tools":{"$ref":"#/components/schemas/ToolFilter"}}},
        "AccessRequestCreated":{"type":"object","required":["request","deviceCode","intervalSeconds","approveWith"],"properties":{
          "request":{"$ref":"#/components/schemas/AccessRequest"},
          "deviceCode":{"$ref":"#/components/schemas/InviteToken"},"intervalSeconds":{"type":"integer"},
          "approveWith":{"type":"string"}}},
        "AccessRequestList":{"type":"object","required":["schema","requests"],"properties":{
          "schema":{"const":1},"requests":{"type":"array","items":{"$ref":"#/components/schemas/AccessRequest"}}}},
        "AccessRequestPoll":{"type":"object","required":["deviceCode","client"],"additionalProperties":false,"properties":{
          "deviceCode":{"$ref":"#/components/schemas/InviteToken"},"client":{"type":"string"},
          "name":{"type":"string"}}},
        "AccessRequestStatus":{"type":"object","required":["state"],"properties":{
          "state":{"enum":["pending","denied","granted"]},"intervalSeconds":{"type":"integer"},
          "granted":{"$ref":"#/components/schemas/IssuedGrant"}}},
        "ApprovalSpec":{"type":"object","additionalProperties":false,"properties":{
          "address":{"type":"string","description":"a current address of the endpoint; default: the preferred one"},
          "port":{"type":"integer","minimum":1,"maximum":65535,"description":"required for a port below 1024"}}},
        "Approval":{"type":"object","required":["id","endpoint","approvedBy","approvedAt","app","host","addresses"],"properties":{
          "id":{"type":"string"},"endpoint":{"$ref":"#/components/schemas/EndpointID"},
          "approvedBy":{"$ref":"#/components/schemas/AuditActor"},"approvedAt":{"$ref":"#/components/schemas/Date"},
          "app":{"type":"string"},"host":{"type":"string"},"port":{"$ref":"#/components/schemas/Port"},
          "addresses":{"type":"array","items":{"type":"object","required":["address"],"properties":{
            "address":{"type":"string"},"interface":{"type":"string"}}}}}},
        "ApprovalList":{"type":"object","required":["schema","approvals"],"properties":{
          "schema":{"const":1},"approvals":{"type":"array","items":{"$ref":"#/components/schemas/Approval"}}}},
        "DenialSpec":{"type":"object","additionalProperties":false,"properties":{
          "address":{"type":"string","description":"a current address of the endpoint; default: all that are not approved"}}},
        "Denial":{"type":"object","required":["endpoint","deniedBy","deniedAt","app","host","addresses"],"properties":{
          "endpoint":{"$ref":"#/components/schemas/EndpointID"},
          "deniedBy":{"$ref":"#/components/schemas/AuditActor"},"deniedAt":{"$ref":"#/components/schemas/Date"},
          "app":{"type":"string"},"host":{"type":"string"},"addresses":{"type":"array","items":{"type":"string"}}}},
        "DenialList":{"type":"object","required":["schema","denials"],"properties":{
          "schema":{"const":1},"denials":{"type":"array","items":{"$ref":"#/components/schemas/Denial"}}}},
        "EndpointSecretSpec":{"type":"object","required":["secret"],"additionalProperties":false,"properties":{
          "secret":{"type":"string","maxLength":4096},"invite":{"$ref":"#/components/schemas/InviteToken"},
          "client":{"type":"string"},"name":{"type":"string"},
          "port":{"type":"integer","minimum":0,"maximum":65535}}},
        "AuditPage":{"type":"object","required":["schema","lines"],"properties":{
          "schema":{"const":1},"lines":{"type":"array","items":{"type":"string"}}}},
        "AuditVerification":{"type":"object","required":["entries"],"properties":{
          "entries":{"type":"integer"},"firstInvalidEntry":{"type":"integer"},"reason":{"type":"string"}}}
        """#
}

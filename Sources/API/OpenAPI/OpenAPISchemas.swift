/// The documents of the API as JSON Schema (draft 2020-12), which is what OpenAPI 3.1 speaks.
enum OpenAPISchemas {
    static let text = "{\(access),\(agents),\(things)}"

    private static let things = #"""
        "Health":{"type":"object","required":["status","version"],
          "properties":{"status":{"enum":["ok","degraded"]},"version":{"type":"string"},"detail":{"type":"string"}}},
        "OpenAPI":{"type":"object"},
        "Date":{"type":"string","format":"date-time"},
        "EndpointID":{"type":"string","pattern":"^[a-z0-9-]{1,40}$"},
        "UDID":{"type":"string","pattern":"^([0-9A-F]{8}-[0-9A-F]{16}|[0-9a-f]{40})$"},
        "Port":{"type":"integer","minimum":0,"maximum":65535},
        "ServiceType":{"type":"string","pattern":"^_[a-z0-9-]+\\._(tcp|udp)$"},
        "ListenAddress":{"type":"string","description":"tcp:PORT, tcp:HOST:PORT or unix:/path",
          "pattern":"^(tcp:|unix:/)"},
        "TXTRecord":{"type":"array","items":{"type":"object","required":["key"],"properties":{
          "key":{"type":"string"},"value":{"type":"string"},"base64":{"type":"string"}}}},
        "EndpointRoute":{"oneOf":[
          {"type":"object","required":["via","address","port","interfaceIndex","approval"],"properties":{
            "via":{"const":"lan"},"address":{"type":"string"},"port":{"$ref":"#/components/schemas/Port"},
            "interface":{"type":"string"},"interfaceIndex":{"type":"integer"},
            "host":{"type":"string","description":"the host that announced it; absent where the owner wrote it down"},
            "app":{"type":"string"},"appIsBundleID":{"const":true},"boot":{"type":"string"},
            "approval":{"enum":["discovered","approved","changed"]},"secretHeld":{"const":true},
            "mismatch":{"type":"string","description":"the app that answered instead of `app`"}}},
          {"type":"object","required":["via","udid","port","approval"],"properties":{
            "via":{"const":"usb"},"udid":{"$ref":"#/components/schemas/UDID"},
            "port":{"$ref":"#/components/schemas/Port"},
            "app":{"type":"string"},"appIsBundleID":{"const":true},"boot":{"type":"string"},
            "approval":{"enum":["discovered","approved","changed"]},"secretHeld":{"const":true},
            "mismatch":{"type":"string","description":"the app that answered instead of `app`"}}}]},
        "Endpoint":{"type":"object",
          "required":["id","kind","app","name","place","state","approval","routes","txt","sources","since"],
          "properties":{
            "id":{"$ref":"#/components/schemas/EndpointID"},"kind":{"type":"string"},"app":{"type":"string"},
            "name":{"type":"string"},"version":{"type":"string"},"boot":{"type":"string"},"server":{"type":"string"},"reason":{"type":"string"},
            "place":{"type":"object","properties":{
              "udid":{"$ref":"#/components/schemas/UDID"},"host":{"type":"string"}}},
            "state":{"enum":["online","suspect","offline","blocked"]},
            "approval":{"enum":["discovered","approved","changed"]},
            "routes":{"type":"array","items":{"$ref":"#/components/schemas/EndpointRoute"}},
            "txt":{"$ref":"#/components/schemas/TXTRecord"},"txtIsTruncated":{"const":true},
            "sources":{"type":"array","items":{"enum":["bonjour","usb","config"]}},
            "since":{"$ref":"#/components/schemas/Date"},"lastSeen":{"$ref":"#/components/schemas/Date"}}},
        "EndpointList":{"type":"object","required":["schema","revision","endpoints"],"properties":{
          "schema":{"const":1},"revision":{"type":"integer"},
          "endpoints":{"type":"array","items":{"$ref":"#/components/schemas/Endpoint"}}}},
        "StaticEndpoint":{"type":"object","required":["name","kind","address","port"],"properties":{
          "name":{"type":"string"},"kind":{"type":"string"},"address":{"type":"string"},
          "port":{"$ref":"#/components/schemas/Port"},"app":{"type":"string"}}},
        "Device":{"type":"object","required":["udid","transport","since"],"properties":{
          "udid":{"$ref":"#/components/schemas/UDID"},"transport":{"enum":["usb","network"]},
          "productID":{"type":"integer"},"locationID":{"type":"integer"},
          "since":{"$ref":"#/components/schemas/Date"}}},
        "DeviceList":{"type":"object","required":["schema","devices"],"properties":{
          "schema":{"const":1},"devices":{"type":"array","items":{"$ref":"#/components/schemas/Device"}}}},
        "TunnelTarget":{"oneOf":[
          {"type":"object","required":["device"],"properties":{"device":{"type":"object","required":["udid","port"],
            "properties":{"udid":{"$ref":"#/components/schemas/UDID"},"port":{"$ref":"#/components/schemas/Port"}}}}},
          {"type":"object","required":["endpoint"],"properties":{"endpoint":{
            "$ref":"#/components/schemas/EndpointID"}}}]},
        "TunnelSpec":{"type":"object","required":["local","target","noRebind","isKept"],"properties":{
          "local":{"$ref":"#/components/schemas/LocalAddress"},"target":{"$ref":"#/components/schemas/TunnelTarget"},
          "noRebind":{"type":"boolean"},"isKept":{"type":"boolean"},"allowsAnyUser":{"type":"boolean"},
          "allowsBrowsers":{"type":"boolean"}}},
        "TunnelSpecs":{"type":"array","items":{"$ref":"#/components/schemas/TunnelSpec"}},
        "TunnelStatistics":{"type":"object","required":["bytesUp","bytesDown","connections","open","failures"],
          "properties":{"bytesUp":{"type":"integer"},"bytesDown":{"type":"integer"},
            "rateUp":{"type":"integer"},"rateDown":{"type":"integer"},
            "connections":{"type":"integer"},"open":{"type":"integer"},
            "failures":{"type":"object","additionalProperties":{"type":"integer"}},
            "lastConnectMilliseconds":{"type":"number"},"lastConnected":{"$ref":"#/components/schemas/Date"}}},
        "Tunnel":{"type":"object","required":["id","spec","owner","state","bound","statistics","since"],"properties":{
          "id":{"type":"string"},"spec":{"$ref":"#/components/schemas/TunnelSpec"},
          "owner":{"type":"integer","description":"the user whose clients come through"},
          "state":{"type":"object","required":["name"],"properties":{
            "name":{"enum":["waiting","active","failed"]},"reason":{"type":"string"}}},
          "bound":{"type":"array","items":{"$ref":"#/components/schemas/LocalAddress"}},
          "statistics":{"$ref":"#/components/schemas/TunnelStatistics"},
          "since":{"$ref":"#/components/schemas/Date"},
          "replaced":{"type":"string","description":"the tunnel that gave its address up for this one, where it is made"}}},
        "TunnelList":{"type":"object","required":["schema","tunnels"],"properties":{
          "schema":{"const":1},"tunnels":{"type":"array","items":{"$ref":"#/components/schemas/Tunnel"}}}},
        "DeleteResponse":{"type":"object","required":["removed"],"properties":{"removed":{"type":"integer"}}},
        "AdvertisementSpec":{"type":"object","required":["name","type","port","txt"],"properties":{
          "name":{"type":"string"},"type":{"$ref":"#/components/schemas/ServiceType"},
          "port":{"$ref":"#/components/schemas/Port"},"txt":{"$ref":"#/components/schemas/TXTRecord"}}},
        "AdvertisementUpdate":{"type":"object","required":["txt"],"properties":{
          "txt":{"$ref":"#/components/schemas/TXTRecord"}}},
        "Advertisement":{"type":"object","required":["id","spec","state","finalName"],"properties":{
          "id":{"type":"string"},"spec":{"$ref":"#/components/schemas/AdvertisementSpec"},
          "state":{"enum":["waiting","registering","published","failed"]},"reason":{"type":"string"},
          "finalName":{"type":"string"}}},
        "AdvertisementList":{"type":"object","required":["schema","advertisements"],"properties":{
          "schema":{"const":1},
          "advertisements":{"type":"array","items":{"$ref":"#/components/schemas/Advertisement"}}}},
        "SourceStatus":{"type":"object","required":["name","state","detail"],"properties":{
          "name":{"type":"string"},"state":{"enum":["ok","starting","missing","off"]},
          "detail":{"type":"string"},"remedy":{"type":"string"}}},
        "BrokerStatus":{"type":"object",
          "required":["version","since","revision","endpoints","devices","tunnels","sources"],"properties":{
            "version":{"type":"string"},"pid":{"type":"integer"},"since":{"$ref":"#/components/schemas/Date"},
            "revision":{"type":"integer"},"endpoints":{"type":"object","additionalProperties":{"type":"integer"}},
            "devices":{"type":"integer"},"tunnels":{"type":"integer"},
            "sources":{"type":"array","items":{"$ref":"#/components/schemas/SourceStatus"}},
            "findings":{"type":"array","items":{"type":"string"}},"storage":{"type":"array","items":{"type":"string"}},"anyUser":{"type":"boolean"}}},
        "Problem":{"type":"object","required":["type","title","status","detail","code"],"properties":{
          "type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},
          "detail":{"type":"string"},"code":{"type":"string"},"next":{"type":"string"}}}
        """#
}

package org.apache.iceberg.rest;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/**
 * The reference implementation's REST catalog, of which no class is replaced: only that it listens on 127.0.0.1, keeps its
 * tables in a file, and ends with the program that started it.
 *
 * <p>Arguments: the port (0: any that is free), then PROPERTY=VALUE of the catalog.
 */
public class LoopbackServer {
  private LoopbackServer() {}

  public static void main(String[] args) throws Exception {
    Map<String, String> properties = new TreeMap<>();
    for (int i = 1; i < args.length; i++) {
      String[] property = args[i].split("=", 2);
      properties.put(property[0], property[1]);
    }
    properties.putIfAbsent("catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog");
    properties.putIfAbsent("jdbc.schema-version", "V1");
    Catalog catalog = CatalogUtil.buildIcebergCatalog("rest_backend", properties, new Configuration());
    RESTCatalogAdapter adapter =
        new RESTServerCatalogAdapter(new RESTCatalogServer.CatalogContext(catalog, properties));
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
    // Names may hold anything: what is encoded in the path is left to the catalog.
    context.getServletHandler().setDecodeAmbiguousURIs(true);
    Server server =
        new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0])));
    for (org.eclipse.jetty.server.Connector connector : server.getConnectors()) {
      connector
          .getConnectionFactory(org.eclipse.jetty.server.HttpConnectionFactory.class)
          .getHttpConfiguration()
          .setUriCompliance(org.eclipse.jetty.http.UriCompliance.UNSAFE);
    }
    server.setHandler(context);
    server.start();
    System.out.println(
        "http://127.0.0.1:"
            + ((org.eclipse.jetty.server.ServerConnector) server.getConnectors()[0]).getLocalPort());
    System.out.flush();
    ProcessHandle.current().parent().ifPresent(parent -> parent.onExit().thenRun(() -> System.exit(0)));
    server.join();
  }
}
